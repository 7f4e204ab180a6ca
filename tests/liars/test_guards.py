"""Each of the harness's guards holds somebody back: without it a liar is no longer rejected for its own reason."""

import importlib
import inspect
from functools import partial

import pytest

from common.record.outcome import WITH_SPEEDUP
from liars import guards, state, test_statistics
from liars.child import measure_quickly
from liars.fine import FINE, VIGILANT
from liars.guards import GUARDS, OF_THE_HARNESS, ON_A_GPU
from liars.test_liars import LIARS

CASES = {**LIARS, **FINE, **VIGILANT}
# What else the modules of the guards offer: parts and tools of those that the tables name
PARTS = {
    "engine.run_alone": {"run_alone"},
    "engine.candidates": {
        "Disqualified", "call_function", "count_costs", "is_out_of_memory", "make_candidates", "reference_answer",
        "reference_rows", "weights",
    },
    "engine.confirm_alone": {"SeedSchedule", "confirm_result"},
    "checks.arrays": {
        "as_tensor", "batches", "clone", "copy_into", "has_arithmetic", "is_array", "is_cupy", "join", "leaves",
        "map_arrays", "memory_span", "merge_numbers", "nbytes", "same_placement", "tensors", "to_float64",
        "with_values",
    },
    "engine.untimed_checks": {"check_untimed", "cores_when_idle"},
    "engine.sampling": {"Samples", "draw_sets", "overwrite", "sample", "sample_blocks", "take_sample"},
    "machine.clock": {  # bound first
        "DeviceClock", "GroupClock", "Sample", "WallClock", "host_seconds", "make_clock", "synchronize",
    },
    "checks.poisoned_memory": {"Condition", "FEW", "FILLED", "STRESS", "USUAL", "would_compile"},
    "checks.guards": {"poison"},
    "engine.inputs": {"inputs_proper", "read_only_inputs"},
    "engine.judgement": {"blind_spots", "expected_answer", "fresh_answer", "judge_answer"},
    "engine.check": {"count_sent_bytes"},
    "checks.stress": {"perturb_by_roundings", "repeat_first", "suitable_draws"},
    "checks.global_state": set(),
    "checks.tolerance": {"Tolerance"},
    "checks.device_trace": {"CallTrace"},
    "checks.compare_to_reference": {"Chunk", "compare_forms"},
    "checks.compare_to_baseline": {"Error", "reference_errors"},
}  # fmt: skip


@pytest.mark.parametrize("name", [*FINE, *VIGILANT])
def test_with_all_guards_nobody_gets_through_and_the_vigilant_see_nothing(name, machine, tmp_path, monkeypatch):
    row = guards.row_of(CASES[name], tmp_path, monkeypatch, measure_quickly)
    assert row.verdict in WITH_SPEEDUP if name in VIGILANT else FINE[name].is_caught(row), row


@pytest.mark.rest
@pytest.mark.parametrize("name", GUARDS)
def test_without_it_somebody_gets_through(name, machine, tmp_path, monkeypatch):
    for case in state.NOT_HERE.keys() & set(GUARDS[name].cases):
        pytest.skip(state.NOT_HERE[case])
    guards.assert_needed(name, GUARDS[name], CASES, tmp_path, monkeypatch)


@pytest.mark.rest
@pytest.mark.parametrize("name", OF_THE_HARNESS)
def test_without_it_its_test_fails(name, machine, tmp_path, monkeypatch):
    guards.home_of(name)
    without = partial(partial, guards.measure_without, name)
    measure, found = test_statistics.measurer(tmp_path, monkeypatch, without), []

    def watched(*arguments, **options):
        found.append(measure(*arguments, **options))
        return found[-1]

    test = getattr(test_statistics, OF_THE_HARNESS[name][1])
    given = {"machine": machine, "measure": watched, "monkeypatch": monkeypatch, "seconds": 20e-9, "believed": False}
    with pytest.raises(AssertionError):
        test(**{parameter: given[parameter] for parameter in inspect.signature(test).parameters})
    assert found and all(pair.arms for pair, *_ in found)  # it is no broken harness that has failed it
    assert "crashed" not in {row.verdict for _, *rows in found for row in rows}


def test_no_guard_is_forgotten():
    found = [name.split(":") for name in {**GUARDS, **OF_THE_HARNESS, **ON_A_GPU} if guards.home_of(name)]
    for name, parts in PARTS.items():
        module = importlib.import_module(f"common.{name}")
        public = {key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
        named = {path.split(".")[0] for home, path in found if home == name}
        forgotten = {key for key in public if not key.startswith("_")} - named - parts
        assert not forgotten, f"common/{name}.py: which liar do they hold back?"
        assert parts <= public - named, f"common/{name}.py: these are no parts of it, or no mere ones"
