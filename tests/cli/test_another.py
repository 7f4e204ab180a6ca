"""A second machine is predicted from the first one's record, before it is measured, and compared with it afterwards."""

from types import SimpleNamespace

import pytest
from samples import one_pair, pair_result, record, rows_of, version

from common.cli import counts
from common.pairs.source import source_hash
from common.pairs.user_error import UserError
from common.record.store import keep_record
from common.show import second_gpu_page as compared
from common.traffic.data import Kernel, Traffic
from common.traffic.least_time import Rates
from common.traffic.versions import VersionTraffic
from common.xray.occupancy import MACHINES
from tools import second_gpu

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
SIZES = {"check": {"n": 7}, "default": {"n": 8}}
RATES = Rates(H200, memory=4e12, per_key={"fp32_flops": 5e13, "dram_bytes": 4e12}, launch_s=0.0, issue_s=0.0)
SLOWER = 4.8e12 / 3.35e12  # the datasheets' memory
LATER = "2999-01-02T03:04:05+00:00"


def traffic(**amounts):
    return Traffic((Kernel("k", 1, 1, **amounts),))


def predicted_time(recorded_s, work):
    old, new = {"dram_bytes": 4.8e12, "fp32_flops": 67e12}, {"dram_bytes": 3.35e12, "fp32_flops": 67e12}
    second = second_gpu.scale_rates(RATES, old, new, H100)
    return second_gpu.predicted_time(recorded_s, work, RATES, second, is_wall=False)


def test_the_part_that_memory_explains_gets_slower_and_the_rest_stays():
    """What the datasheets share stays, too, until memory takes longer."""
    there = predicted_time(5e-6, traffic(distinct_bytes=4e6))  # 1 us of 5 us
    assert there == second_gpu.PredictedTime(pytest.approx(4e-6 + SLOWER * 1e-6), "memory", pytest.approx(0.2))
    assert predicted_time(1.5e-6, traffic(flops={"fp32_flops": 5e7})).seconds == pytest.approx(1.5e-6)
    there = predicted_time(1e-6, traffic(flops={"fp32_flops": 5e7}, distinct_bytes=3.2e6))  # 1 us; 0.8 us, then 1.146
    assert (there.seconds, there.by) == (pytest.approx(0.8e-6 * SLOWER), "memory")


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A chapter of one pair that the H200 ran in 2 and 1 ms, as the memory says. keep(...) records another run."""
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    monkeypatch.setattr("common.record.files.RECORDED", recorded)
    pair = one_pair(tmp_path / "ch1", version(sizes=SIZES), version(sizes=SIZES))
    monkeypatch.setattr(second_gpu, "chapters", lambda: {1: tmp_path / "ch1"})
    sheet = SimpleNamespace(environment={"device": {"kind": "cuda", "name": H200}})
    monkeypatch.setattr(
        second_gpu, "measured_sheets", lambda problems: [(recorded / "nvidia_h200/hardware.json", sheet)]
    )
    monkeypatch.setattr(second_gpu, "rates_of_sheet", lambda found, folder: RATES)
    versions = [
        VersionTraffic("baseline", traffic(distinct_bytes=8e9)),
        VersionTraffic("optimized", traffic(distinct_bytes=1.0)),
    ]
    kept = [counts.CountedPair.from_pair(pair, "default", versions)]
    counts.save(counts.new_counts(kept, MACHINES["sm_90"]), recorded / "counts.json")

    def keep(device, ratio, date=LATER, **fields):
        result = pair_result(ratio=ratio, **{"source_hash": source_hash(pair), **fields})
        keep_record(record(result, name=device, date=date), recorded)

    keep(H200, 2.0)
    keep.folder = recorded / "nvidia_h100_80gb_hbm3"
    return keep


def test_a_prediction_is_written_before_the_machine_is_measured_and_compared_afterwards(course):
    path = second_gpu.predict(H100)
    (row,) = compared.FORMAT.load(path).rows
    assert path == course.folder / compared.FILE
    assert (row.recorded, row.predicted) == (2.0, pytest.approx(2 * SLOWER))  # the optimized one moves nothing
    assert compared.pages() == {}  # nothing is measured yet
    course(H100, 2.5)
    ((page, text),) = compared.pages().items()
    worst, of_chapter = (rows_of(part)[1] for part in text.split("\n## ")[1:])
    shown = ["double", "optimized", "2.00x", "2.87x", "2.50x [2.48, 2.53]", "1.15", "100% -> 0%", "0.87 -> 1.00"]
    assert page == path.with_suffix(".md") and worst == of_chapter == shown
    assert all(said in text for said in ("1 of 1 predicted ratios", "worst off by 1.15x", "worst off by 1.25x"))


def test_a_pair_that_has_changed_since_is_compared_only_if_a_record_was_carried_over_the_change(course):
    (row,) = compared.FORMAT.load(second_gpu.predict(H100)).rows
    course(H100, 2.5, source_hash="another")
    assert compared.pages() == {}
    course(H200, 2.0, source_hash="another", carried=[row.source_hash])
    assert len(compared.pages()) == 1


def test_a_prediction_is_not_replaced_and_a_machine_that_is_measured_not_predicted(course):
    second_gpu.predict(H100)
    with pytest.raises(UserError, match=r"recorded/nvidia_h100_80gb_hbm3/predicted\.json exists"):
        second_gpu.predict(H100)
    (course.folder / compared.FILE).unlink()
    course(H100, 2.5)
    with pytest.raises(UserError, match=r"nvidia_h100_80gb_hbm3 is already measured \(ch1.json\)"):
        second_gpu.predict(H100)
