"""Rates come from where it says: a measured GPU's from its records, another's from its datasheet."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from samples import arm, pair_result, record

from common.cli import prediction_rates
from common.machine.device import datasheet
from common.record.store import keep_record
from common.xray.occupancy import MACHINES

LIMITS = {"dram_bytes": {"measured": 4e12}, "fp32_flops": {"measured": 5e13}, "link_bytes": {"measured": None}}
DEVICE = {"kind": "cuda", "name": "NVIDIA H200", "capability": [9, 0]}
SHEET = SimpleNamespace(environment={"device": DEVICE}, limits=LIMITS, levels={"L2": {"read": 9e12, "write": 5e12}})


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A GPU whose sheet is SHEET, and on which 40 small kernels took 120 us, and one from Python 18 us."""
    many = pair_result("batched_matmul", chapter="ch4", sizes={"batch": 40}, arms={"baseline": arm(120e-6)}, rows=[])
    one = pair_result("add_small", chapter="ch3", arms={"baseline": arm(18e-6)}, rows=[])
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path)
    fields = {"noise_floor": None, "orders": []}
    for result in (many, one):
        keep_record(record(replace(result, **fields)), tmp_path)
    sheets = [(tmp_path / "nvidia_h200/hardware.json", SHEET)]
    monkeypatch.setattr(prediction_rates, "measured_sheets", lambda problems: sheets)
    return sheets


def test_a_measured_gpus_rates_are_what_was_measured(recorded):
    found = prediction_rates.rates_for(MACHINES["sm_90"])
    assert (found.name, found.memory, found.l2_read, found.l2_write) == ("NVIDIA H200", 4e12, 9e12, 5e12)
    assert found.per_key == {"dram_bytes": 4e12, "fp32_flops": 5e13}
    assert (found.launch_s, found.issue_s) == (pytest.approx(3e-6), pytest.approx(18e-6))
    for said in ("as measured", "memory 4.00 TB/s", "L2 read 9.00 TB/s", "a launch 3.00 us", "18.0 us to issue"):
        assert said in found.source


def test_anothers_are_its_datasheets_and_its_launches_those_that_were_measured(recorded):
    found = prediction_rates.rates_for(MACHINES["sm_80"])
    peaks, source = datasheet(found.name)
    assert "A100" in found.name and source in found.source and "3.00 us" in found.source and "H200" in found.source
    assert (found.memory, found.per_key, found.l2_read) == (peaks["dram_bytes"], peaks, None)
    assert found.launch_s == pytest.approx(3e-6)


def test_without_a_datasheet_or_a_recorded_launch_there_are_none(recorded):
    assert prediction_rates.rates_for(MACHINES["sm_120"]) is None
    recorded.clear()
    assert prediction_rates.rates_for(MACHINES["sm_80"]) is None
