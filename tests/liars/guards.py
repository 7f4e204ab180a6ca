"""The harness's guards, how to take each of them away, and the liars that then get through.

A guard is named by what is replaced: `module:name` or `module:Class.name` in common/.
"""

import contextlib
import importlib
import random
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import ismodule
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from samples import reason_of, write_pair

from common.checks.arrays import clone
from common.engine.job import AloneRequest, AloneResult, Job
from common.isolation import worker
from common.pairs.pair import discover
from common.record.result import PairResult, Row
from liars.case import Case
from liars.child import Measure, measure_quickly, measured
from liars.fine import VIGILANT


class Unshuffled(random.Random):
    def sample(self, population: Any, k: int, **_: Any) -> list[Any]:
        return list(population)[:k]


ALIKE = SimpleNamespace(Random=lambda seed: random.Random(0))
UNSHUFFLED = SimpleNamespace(Random=Unshuffled)


def on_the_same_inputs(self: Any, inputs: dict[str, Any], weights_from: dict[str, Any]) -> dict[str, Any]:
    """Candidate.run_setup, on what `run` will see."""
    return self.setup(**weights_from) if self.setup else {}


def gives(make: Callable[[], Any]) -> Callable[..., Any]:
    """Whatever it is called with."""
    return lambda *_, **__: make()


nothing, zero, false, no_dict, no_set, no_tuple = map(gives, (str, float, bool, dict, set, tuple))
none, true = gives(lambda: None), gives(lambda: True)


def clone_late(tree: Any) -> Any:
    time.sleep(0.05)
    return clone(tree)


def always_alike(seed: int, device: str) -> None:
    """Inputs are drawn from one seed."""
    import torch

    torch.manual_seed(0)


@dataclass(frozen=True)
class Guard:
    """`instead`: what stands in for it. `cases`: liars that are then rejected for another reason or not at all, honest
    versions that then see it.
    """

    instead: Any
    cases: tuple[str, ...]
    timed: bool = False  # else they are caught by checks alone


HALF = dict.fromkeys(("fp64", "fp32", "fp16", "bf16"), 0.5)
GUARDS = {
    # state
    "checks.global_state:GlobalState.restore": Guard(nothing, ("number_of_threads",)),
    "checks.global_state:judging_functions": Guard(list, ("the_judge",)),
    "checks.global_state:SETTINGS": Guard({}, ("blas_threads",)),
    "checks.guards:LeakDetector.find_new": Guard(nothing, ("leaves_a_thread",)),
    "checks.guards:children": Guard(no_set, ("leaves_a_process",)),
    "checks.guards:untimely_actions": Guard(no_set, ("compiles_python",), timed=True),
    "engine.untimed_checks:check_calls": Guard(no_dict, ("compiles_python",), timed=True),
    "checks.poisoned_memory:filled_memory": Guard(contextlib.nullcontext, ("adds_to_unwritten_memory",)),
    "checks.guards:poison_outputs": Guard(none, ("keeps_the_other_ones_output",)),
    "engine.candidates:caches": Guard(no_dict, ("leaves_a_row_of_the_cache_out",)),
    "checks.guards:poison_answer": Guard(none, ("sees_its_answers_overwritten",)),
    "checks.guards:changed_input": Guard(nothing, ("changes_weight",)),
    "engine.judgement:blame": Guard(false, ("changes_inputs_later",), timed=True),
    "checks.arrays:private_views": Guard(lambda tree: tree, ("makes_its_input_double",)),
    "checks.arrays:difference": Guard(nothing, ("inputs_of_version_precision",)),
    "checks.arrays:overlap_path": Guard(nothing, ("a_view",)),
    # the answer
    "engine.check:check": Guard(lambda bench: bench, ("works_at_round_sizes",)),
    "engine.check:check_one_less": Guard(
        none, ("works_at_even_sizes", "drops_columns_beyond_whole_blocks"), timed=True
    ),
    "checks.stress:write_draw": Guard(false, ("works_for_small_numbers",)),
    "checks.stress:change_layout": Guard(lambda draw, tree: tree, ("works_without_gaps",)),
    "checks.stress:LAYOUTS": Guard(
        {},
        (
            "works_for_adjacent_columns",
            "takes_what_is_dense_for_contiguous",
            "takes_an_expanded_array_for_a_row",
            "takes_the_first_axes_for_one",
        ),
    ),
    "engine.check:_varies": Guard(true, ("constants_beside_weights",)),
    "engine.check:UNIT": Guard(1 << 60, ("reads_beside_rows_of_whole_units",)),
    "checks.stress:perturb": Guard(none, ("leaves_out_a_shift_of_zero",)),
    "engine.judgement:judge_all": Guard(gives(lambda: ({}, None)), ("a_little_coarser",)),
    "engine.judgement:compare_round": Guard(false, ("remembers_for_a_block",), timed=True),
    "engine.plan:judged_blocks": Guard(lambda rng, blocks: {0, blocks - 1}, ("less_in_the_middle_alike",), timed=True),
    "engine.sampling:_calls_after": Guard(gives(int), ("works_last_in_a_burst",), timed=True),
    "engine.sampling:clone": Guard(clone_late, ("waits_while_watched",), timed=True),
    "checks.compare_to_baseline:drift": Guard(nothing, ("coarser_in_the_middle",), timed=True),
    "engine.judgement:judge_timed": Guard(no_dict, ("a_little_coarser_at_the_timed_size",), timed=True),
    "engine.inputs:harvest_grads": Guard(no_dict, ("forward_without_backward",)),
    "checks.compare_to_reference:compare": Guard(nothing, ("zeros",)),
    "checks.compare_to_baseline:compare_elements": Guard(nothing, ("remembers_for_a_block",), timed=True),
    "checks.compare_to_reference:blind_spot": Guard(nothing, ("always_true", "nan_on_both_sides")),
    "checks.compare_to_reference:_compare_form": Guard(nothing, ("another_dtype",)),
    "checks.compare_to_reference:_same_special": Guard(true, ("a_nan",)),
    "checks.compare_to_reference:_compare_chunks": Guard(nothing, ("a_little_coarser",)),
    "checks.compare_to_reference:MOST_WRONG": Guard(1.0, ("what_is_small_beside_the_rest",)),
    "checks.compare_to_reference:CHUNKS": Guard(1, ("a_little_coarser_at_the_end",)),
    "checks.tolerance:TOLERANCE": Guard(HALF, ("one_element_of_a_million",)),
    "checks.arrays:is_plain": Guard(true, ("a_lazy_tensor",)),
    "checks.arrays:laziness": Guard(nothing, ("conjugated_when_read",)),
    "checks.arrays:has_repeats": Guard(false, ("one_row_shown_many_times",)),
    "checks.arrays:memory_order": Guard(nothing, ("a_transposed_answer",)),
    "engine.candidates:tensors": Guard(no_tuple, ("an_oracle_of_its_own_making",)),
    "engine.candidates:other_work": Guard(no_dict, ("a_cost_of_its_own",)),
    # what the calls are given
    "engine.candidates:Candidate.run_setup": Guard(on_the_same_inputs, ("computes_in_setup",)),
    "engine.inputs:seed_all": Guard(always_alike, ("computes_in_setup",)),
    "engine.inputs:InputSet.overwrite": Guard(none, ("remembers_for_a_block",), timed=True),
    "engine.inputs:placement_seed": Guard(lambda seed: seed, ("works_in_its_inputs",)),
    "engine.inputs:InputSet.differing": Guard(nothing, ("sees_no_number_with_other_values",), timed=True),
    "engine.sampling:random": Guard(ALIKE, ("sees_no_integers_in_two_calls",), timed=True),
    "engine.plan:needs_whole_draws": Guard(
        false, ("remembers_answers_that_change_rarely", "sees_what_is_sorted"), timed=True
    ),
    "checks.arrays:overwrite_slice": Guard(none, ("remembers_signs",), timed=True),
    "engine.inputs:SHRINK": Guard((1.0, 1.0), ("sees_no_row_in_two_calls",), timed=True),
    "engine.inputs:PERIOD": Guard(1, ("sees_no_row_but_for_its_scale",), timed=True),
}
NO_ENTROPY = SimpleNamespace(randbits=gives(int))
NO_MODULES = SimpleNamespace(**{**vars(sys), "modules": {}})
# Those that only a GPU needs, and liars of gpu.py
ON_A_GPU = {
    "checks.device_trace:_outside": Guard(gives(lambda: (None, True)), ("waits_no_more",), timed=True),
    "engine.conclude:late_work": Guard(no_dict, ("joins_no_more",), timed=True),
    "checks.guards:listen_to_triton": Guard(none, ("tunes_in_every_call",), timed=True),
    "checks.poisoned_memory:few_programs": Guard(contextlib.nullcontext, ("drops_what_is_left_for_its_programs",)),
    "checks.poisoned_memory:sys": Guard(NO_MODULES, ("adds_to_unwritten_memory_in_cupy",)),  # where it finds CuPy
}
# What the tests of test_statistics.py need: (what stands in for it, the test)
OF_THE_HARNESS = {
    "engine.conclude:IN_DOUBT": (1e9, "test_a_time_far_below_the_measured_limit_is_none"),
    "engine.measure:secrets": (NO_ENTROPY, "test_what_one_run_has_kept_on_disk_is_of_no_use_to_the_next"),
    "engine.conclude:impossible_work": (nothing, "test_a_time_below_the_physical_limit_is_none"),
    "record.recompute:FLOOR_TIMES": (0, "test_what_is_shorter_than_the_clocks_floor_has_no_time"),
    "engine.conclude:MORE_CORES": (1e9, "test_more_cores_than_the_other_arm_keeps_busy_are_said"),
    "checks.device_trace:trace_call": (none, "test_an_allocation_that_the_other_arm_does_without_is_said"),
    "engine.sampling:_touch_memory": (none, "test_the_first_block_on_a_cpu_counts_for_nothing"),
    "engine.sampling:slowdowns": (no_dict, "test_a_round_is_voided_for_the_heat_and_not_for_its_times"),
    "engine.stage:random": (UNSHUFFLED, "test_who_naps_longer_late_in_a_round_is_nobody_in_particular"),
    "stats:noise_floor": (zero, "test_where_the_baseline_differs_from_itself_a_smaller_difference_is_none"),
}


def home_of(guard: str) -> tuple[Any, str]:
    """The module or class that it is found in, and its name there. Raises AttributeError where there is no such thing.

    (In a pair's process that would be the death of the pair, and nothing of what the guard is for would be seen.)
    """
    module, _, path = guard.partition(":")
    home: Any = importlib.import_module(f"common.{module}")
    *within, name = path.split(".")
    for part in within:
        home = getattr(home, part)
    getattr(home, name)
    return home, name


def measure_without(
    guard: str, measure: Measure, job: Job, request: AloneRequest | None, line: worker.ParentPipe
) -> PairResult | AloneResult:
    """With one guard taken away."""
    instead = OF_THE_HARNESS[guard][0] if guard in OF_THE_HARNESS else {**GUARDS, **ON_A_GPU}[guard].instead
    home, name = home_of(guard)
    original = getattr(home, name)
    if callable(original) and ismodule(home) and original.__module__ == home.__name__:  # wherever it was imported
        for other in [other for key, other in sys.modules.items() if key.startswith("common.")]:
            for known in [known for known, value in vars(other).items() if value is original]:
                setattr(other, known, instead)
    else:
        setattr(home, name, instead)
    return measure(job, request, line)


def row_of(case: Case, folder: Path, patch: Any, measure: Measure, **options: Any) -> Row:
    """What is said of the liar, alone with its baseline."""
    text, baseline = case.versions()["liar"]
    write_pair(folder, "pair", {"liar": text}, baseline)
    (pair,) = measured(discover(folder), patch, measure, **options).pairs
    (row,) = pair.rows
    return row


def assert_needed(name: str, guard: Guard, cases: dict[str, Case], folder: Path, patch: Any, **options: Any) -> None:
    """Without it each of its cases gets through, or is caught for something else, or somebody else is.

    Nobody dies of that, or it is the harness that broke: only a vigilant version, by the error that it raises itself.
    """
    home_of(name)
    unguarded = partial(measure_without, name, measure_quickly)
    for case in guard.cases:
        row = row_of(cases[case], folder / case, patch, unguarded, check_only=not guard.timed, **options)
        if case in VIGILANT:
            assert re.match(r"AssertionError \(optimized_pair_liar.py:\d+\)", reason_of(row)), row
        else:
            assert row.verdict != "crashed" and not cases[case].is_caught(row), row
