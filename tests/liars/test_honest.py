"""Honest versions that a strict judge condemns, each beside a wrong one. Without a mechanism the honest is out."""

import contextlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from samples import reason_of

from common.checks.guards import children
from common.record.outcome import Verdict
from liars.case import MATRIX, WRONG, alone, rooms, rows_of, write_rooms
from liars.child import measure_quickly, measured
from liars.guards import home_of

EDGES = """
x = torch.randn(n, device=device)
x[::4] = (torch.randint(-9, 9, x[::4].shape, device=device) + 0.5) * 0.1  # in float32 a little below or above an edge
return {"x": x}
"""
TIES = 'return {"x": torch.randint(0, 50, (n, 33), device=device).float()}'
LAST_FIRST = "return 32 - x.flip(1).sort(dim=1, descending=True, stable=True)[1][:, :4]"
POOL = """
from multiprocessing import get_context
def double(x): return 2 * x
"""
IN_A_POOL = """
with get_context("fork").Pool(1, torch.set_num_threads, (1,)) as pool:
    (y,) = pool.map(double, [x])
    pool.close()
    pool.join()
return y
"""
NAPS = "import threading, time\nthreading.Thread(target=time.sleep, args=(5,), daemon=True).start()\nreturn x + x"
ONE = {"check": {"n": 127}, "default": {"n": 256}}


def everything() -> tuple[set[int], set[int]]:
    """The threads and processes of this process, whoever started them."""
    return {*sys._current_frames()}, children()


# A mechanism, what stands in for it, and a wrong version with its honest twin, which passes only with the mechanism
MECHANISMS: dict[str, tuple[str, Any, Any]] = {
    "rounds_to_integers": ("checks.ambiguous_answers:resolve", lambda out, *_: out, alone(
        (), f"{WRONG}: .* values differ", "return (x / 0.1).trunc().to(torch.int8)",
        "return (x * 10).round().to(torch.int8)", "return (x / 0.1).round().to(torch.int8)", inputs=EDGES, sizes=ONE,
    )),
    "rounds_and_scales": ("checks.ambiguous_answers:_across_jumps", lambda value, *_: value, alone(
        (), WRONG, "return (x / 0.1).trunc() * 0.1", "return (x * 10).round() * 0.1", "return (x / 0.1).round() * 0.1",
        inputs=EDGES, sizes=ONE,
    )),
    "chooses_another_of_equals": ("checks.ambiguous_answers:_point_to_equals", lambda *_: False, alone(
        (), f"{WRONG}: .* values differ", "return x.argmax(1, keepdim=True).repeat(1, 4)", LAST_FIRST,
        "return x.sort(dim=1, descending=True, stable=True)[1][:, :4].contiguous()", inputs=TIES, sizes=ONE,
    )),
    "chooses_one_of_equals_twice": ("checks.ambiguous_answers:_point_to_equals", lambda *_: False, alone(
        (), "on zeros: .* values differ", "y = x.topk(4, 1)[1]\ny[x.amax(1) == x.amin(1)] = 0\nreturn y",
        LAST_FIRST, "return x.sort(dim=1, descending=True, stable=True)[1][:, :4].contiguous()", inputs=TIES, sizes=ONE,
    )),
    "makes_a_float32_constant": ("engine.candidates:_wide_constants", contextlib.nullcontext, alone(
        (), WRONG, "return 0.5 * x", "return 0.25 * x", "return torch.lerp(torch.zeros(len(x)), x, 0.25)", sizes=ONE,
    )),
    "declares_no_gradients": ("engine.candidates:Candidate.has_gradients", True, alone(
        (), WRONG, "return 3 * x.detach()", "return 2 * x.detach()", sizes=ONE,
        inputs='return {"x": torch.randn(n, device=device).requires_grad_()}',
        baseline_extra='NO_GRADIENTS = "a model that is only used"',
    )),
    "joins_its_pool": ("checks.guards:_company", everything, alone(
        (), "leaks threads", NAPS, IN_A_POOL, extra=POOL, inputs=MATRIX, sizes=ONE,
    )),
}  # fmt: skip
FAMILY = {"honest": {name: case for name, (_, _, case) in MECHANISMS.items()}}
ROOMS, WHERE = rooms(FAMILY)


@pytest.fixture(scope="module")
def rows(machine, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        pairs = write_rooms(ROOMS, tmp_path_factory.mktemp("honest"))
        return rows_of(measured(pairs, patch, measure_quickly, check_only=True))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_wrong_version_is_out_and_its_honest_twin_is_not(name, rows):
    assert FAMILY["honest"][name].is_caught(rows[WHERE[name, "liar"]]), rows[WHERE[name, "liar"]]
    assert rows[WHERE[name, "twin"]].verdict == Verdict.VERIFIED, rows[WHERE[name, "twin"]]


def measure_without(name: str, measure: Callable, *arguments: Any) -> Any:
    """With one mechanism taken away, in this process and wherever its function was imported."""
    home, attribute = home_of(MECHANISMS[name][0])
    original = getattr(home, attribute)
    for module in [module for key, module in sys.modules.items() if key.startswith("common.")]:
        if vars(module).get(attribute) is original:
            setattr(module, attribute, MECHANISMS[name][1])
    setattr(home, attribute, MECHANISMS[name][1])
    return measure(*arguments)


@pytest.mark.rest
@pytest.mark.parametrize("name", MECHANISMS)
def test_without_the_mechanism_the_honest_twin_is_out(name, machine, tmp_path, monkeypatch):
    twin_only = {pair: ({label: text for label, text in variants.items() if label == f"{name}_twin"}, baseline)
                 for pair, (variants, baseline) in ROOMS.items() if f"{name}_twin" in variants}  # fmt: skip
    measure = partial(measure_without, name, measure_quickly)
    (pair,) = measured(write_rooms(twin_only, tmp_path), monkeypatch, measure, check_only=True).pairs
    (row,) = pair.rows
    assert row.verdict == Verdict.INVALID and reason_of(row), row
