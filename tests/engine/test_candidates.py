"""The candidates of a pair: what a variant leaves out it has from its baseline, what it writes is its own."""

import gc
import random
import weakref
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from samples import one_pair, version

from common.checks.poisoned_memory import USUAL
from common.engine import check
from common.engine.candidates import count_costs, make_candidates, reference_answer
from common.pairs.pair import load
from common.record.outcome import Where

GIVEN = """
def reference(x, w_shift): return 2 * x + w_shift
def library(x, w_shift): return torch.add(w_shift, x, alpha=2)
def library_other(x, w_shift): return x + x + w_shift
def yardstick_copy(x, w_shift): return x.clone()
def cost(x, w_shift): return {"dram_bytes": 2 * x.nbytes, "fp32_flops": 2 * len(x)}
"""
OF_BASELINE = ("baseline", "library", "library/other", "yardstick/copy", "control")
WORK = {"dram_bytes": 40.0, "fp32_flops": 10.0}  # of five elements


def candidates(folder, variant):
    """Of a pair with GIVEN in its baseline: label -> (file, precision), and label -> cost."""
    pair = one_pair(folder, version(extra=variant), version(extra=GIVEN))
    modules = {each.label: load(each.path) for each in pair.versions}
    made = make_candidates(modules, load(pair.baseline.path), ())
    inputs = {each.label: {"x": torch.ones(5), "w_shift": torch.ones(1)} for each in made}
    costs, wrong = count_costs(made, inputs)
    assert wrong == {}
    return {each.label: (Path(each.module.__file__).name, each.precision) for each in made}, costs


def test_what_a_variant_leaves_out_it_has_from_its_baseline(tmp_path):
    of_baseline = dict.fromkeys(OF_BASELINE, ("baseline_double.py", ""))
    for variant in ("", GIVEN):  # written once more it changes nothing
        labels, costs = candidates(tmp_path / f"pair{len(variant)}", variant)
        assert labels == of_baseline | {"optimized": ("optimized_double.py", "")}
        assert costs == dict.fromkeys(labels, WORK)


def test_what_a_variant_writes_itself_is_its_own(tmp_path):
    own = """
PRECISION = "tf32"
def library_tf32(x, w_shift): return 2 * x + w_shift
def cost(x, w_shift): return {"dram_bytes": 2 * x.nbytes, "tf32_flops": 2 * len(x)}
"""
    labels, costs = candidates(tmp_path, own)
    assert {label: precision for label, (_, precision) in labels.items() if precision} == {
        "optimized": "tf32",
        "library/tf32": "tf32",
    }
    assert {label for label, cost in costs.items() if "tf32_flops" in cost} == {"optimized", "library/tf32"}
    assert costs["library"] == costs["baseline"] == WORK


@pytest.mark.parametrize(("package", "labels"), [("json", {"library/rare"}), ("absent_package", set())])
def test_a_library_is_left_out_where_its_package_is_not_installed(package, labels, tmp_path):
    rare = f"""
LIBRARY_NEEDS = {{"library_rare": "{package}"}}
def library_rare(x, w_shift):
    import {package}
    return 2 * x
"""
    pair = one_pair(tmp_path, version(), version(extra=rare))  # not refused: the pair itself does not need it
    made = make_candidates({"baseline": load(pair.baseline.path)}, load(pair.baseline.path), ())
    assert {each.label for each in made} == {"baseline", "control"} | labels


@pytest.mark.parametrize("narrow", ["", 'NARROW_WEIGHTS = "8 GB of them"'])
@pytest.mark.parametrize("of", ["run", "reference"])
def test_narrow_weights_reach_the_reference_as_they_are(of, narrow, tmp_path):
    run = "seen.append((x.dtype, w_shift.dtype))\nreturn 2 * x + w_shift.to(x.dtype)"
    reference = f"def reference(x, w_shift):\n    {run.replace(chr(10), chr(10) + '    ')}" if of == "reference" else ""
    pair = one_pair(tmp_path, version(), version(run, extra=f"seen = []\n{narrow}\n{reference}"))
    module = load(pair.baseline.path)
    baseline = make_candidates({"baseline": module}, load(pair.baseline.path), ())[0]
    inputs = {"x": torch.ones(5, dtype=torch.bfloat16), "w_shift": torch.ones(1, dtype=torch.bfloat16)}
    answer = reference_answer(baseline, None, inputs, inputs)
    assert answer.dtype == torch.float64 and answer.tolist() == [3] * 5
    assert module.seen == [(torch.float64, torch.bfloat16 if narrow else torch.float64)]


def test_a_size_that_is_refused_leaves_no_inputs_in_memory(monkeypatch):
    """At a timed size they are a large part of it, and the next size's come beside them."""
    kept, asked = weakref.WeakSet(), []

    def refuse(stage, inputs, *others, **conditions):
        kept.add(inputs)
        asked.append(len(kept))
        error = ValueError("odd")
        error.inputs, error.itself = inputs, error  # as a traceback whose frames hold it: freed only as garbage
        raise error

    monkeypatch.setattr(check, "InputSet", lambda *arguments: type("Inputs", (), {})())
    monkeypatch.setattr(check, "_judge_versions", refuse)
    job = SimpleNamespace(size="default", device="cpu")
    stage = SimpleNamespace(job=job, memory_check=nullcontext, ranks=SimpleNamespace(rank_arguments={}))
    stage.remaining, stage.rng = [], random.Random(0)
    gc.disable()
    try:
        check._judge_resized(stage, {"n": 3}, "n", Where.LESS, USUAL)
    finally:
        gc.enable()
    assert asked and not kept
