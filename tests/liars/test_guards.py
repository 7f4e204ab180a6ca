"""Each of the harness's guards holds somebody back: without it a liar is no longer rejected for its own reason."""

import importlib
import inspect
import re
from functools import partial

import pytest
from samples import write_pair

from common.pair import discover
from common.result import BELIEVED
from liars import test_statistics
from liars.child import measure_quickly, measured
from liars.guards import FINE, GUARDS, OF_THE_HARNESS, VIGILANT, measure_without
from liars.test_liars import LIARS

CASES = {**LIARS, **FINE, **VIGILANT}
# What else the modules of the guards offer: parts and tools of those that the tables name
PARTS = {
    "guard": {"is_output", "Company", "listen_to_triton"},  # Triton's: gpu.py
    "judge": {"fresh_answer"},
    "state": {"Watch"},
    "trace": {"Seen"},
    "verify": {"Chunk", "same_form"},
}


def outcome(name, measure, folder, timed=True):
    """(is this case judged as it should be, its row)."""
    text, baseline = CASES[name].halves()["liar"]
    write_pair(folder, name, {"liar": text}, baseline)
    with pytest.MonkeyPatch.context() as patch:
        (pair,) = measured(discover(folder, name), patch, measure, check_only=not timed).pairs
    (row,) = pair.rows
    if name in VIGILANT:
        return row.verdict in (BELIEVED if timed else ("checked",)), row
    return row.verdict == CASES[name].verdict and bool(re.search(CASES[name].reason, row.reason)), row


@pytest.mark.parametrize("name", {**FINE, **VIGILANT})
def test_with_all_guards_nobody_gets_through(name, machine, tmp_path):
    right, row = outcome(name, measure_quickly, tmp_path)
    assert right, row


@pytest.mark.parametrize("guard", GUARDS)
def test_without_it_somebody_gets_through(guard, machine, tmp_path):
    unguarded = partial(measure_without, guard, measure_quickly)
    for name in GUARDS[guard].cases:
        right, row = outcome(name, unguarded, tmp_path, GUARDS[guard].timed)
        assert not right, row


@pytest.mark.parametrize("guard", OF_THE_HARNESS)
def test_without_it_its_test_fails(guard, machine, tmp_path, monkeypatch):
    test = getattr(test_statistics, OF_THE_HARNESS[guard][1])
    measure = test_statistics.measurer(tmp_path, monkeypatch, lambda inside: partial(measure_without, guard, inside))
    given = {"machine": machine, "measure": measure, "monkeypatch": monkeypatch, "seconds": 20e-9, "believed": False}
    with pytest.raises(AssertionError):
        test(**{name: given[name] for name in inspect.signature(test).parameters})


def test_no_guard_is_forgotten():
    for name, parts in PARTS.items():
        module = importlib.import_module(f"common.{name}")
        public = {key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
        named = {guard.split(":")[1] for guard in {**GUARDS, **OF_THE_HARNESS} if guard.split(":")[0] == name}
        forgotten = {key for key in public if not key.startswith("_")} - named - parts
        assert not forgotten, f"common/{name}.py: which liar do they hold back?"
