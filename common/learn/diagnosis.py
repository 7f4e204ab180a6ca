"""What a wrong answer of a kernel looks like, from every load and store that its programs make."""

from collections.abc import Sequence
from typing import Any

import torch

from common.checks import stress
from common.checks.arrays import to_float64
from common.checks.poisoned_memory import filled_memory
from common.isolation.pipe import Report
from common.learn.access_trace import (
    AccessTrace,
    Arrays,
    CreatedTensors,
    no_launch,
    racing_stores,
    trace_accesses,
    uses_undefined,
    with_margins,
)
from common.learn.errors import explain_error
from common.learn.failure_text import HARD, WrongAnswer, output, sentence, size_text
from common.learn.first_mismatch import OVERFLOW, first_mismatch
from common.pairs.pair import Pair, load

Answers = list[tuple[torch.Tensor, torch.Tensor]]  # (own, right)
FINE = 1e-3  # float32 sums in another order, also long ones, and numbers that cancel
COARSE = 2e-2  # 16-bit elements: what is looked for here is wrong by more
ANY = 1e30  # only NaN and infinity differ
HARD_TOO = f"On ordinary values it is right, but hard values count, too: {HARD}"


def diagnose(pair: Pair, failure: WrongAnswer, report: Report) -> str:
    """What is wrong with an answer of the pair's variant, and what it looks like where Triton interprets."""
    try:
        arrays, answers, trace = run_traced(pair, failure.size)
    except Exception as error:  # noqa: BLE001 (a reader's kernel may raise anything)
        return ". ".join(filter(None, [failure.text(pair), sentence(explain_error(error))]))
    text = failure.text(pair, [right.shape for _, right in answers])
    first, looks = _first_difference(pair, answers, trace)
    text = f"{failure.where(pair)}. {sentence(first)}" if first else text
    if not any(access.kind != "load" and access.mask.any() for access in trace.accesses):
        looks = "no program has stored anything: is there a tl.store, and is its mask ever true?"
    elif not first:
        looks = (
            racing_stores(trace.stores, arrays) or _undefined_lanes(pair, failure.size, trace) or failure.rounding_cause
        )
    if failure.draw and not (first or looks):
        text, looks = _on_hard_values(pair, failure) or text, HARD_TOO
    return ". ".join(filter(None, [text, sentence(looks)]))


def _on_hard_values(pair: Pair, failure: WrongAnswer) -> str:
    """The first element that these make wrong; empty if there is none here, with other random numbers."""
    if failure.draw not in stress.FLOATS | stress.INTEGERS:
        return ""
    _, answers, trace = run_traced(pair, failure.size, draw=failure.draw)
    first, looks = _first_difference(pair, answers, trace, failure.draw)
    looks = looks if looks.startswith(OVERFLOW) else ""  # of other symptoms ordinary values would tell
    return first and ". ".join(filter(None, [f"{failure.where(pair)}. {sentence(first)}", looks]))


def bounds(pair: Pair, size: str, report: Report) -> str:
    """What a right answer of the pair's variant at a size owes to others: torch, which lane is last, masked lanes."""
    arrays, _, trace = run_traced(pair, size)
    if not trace.accesses:
        return "`run` launches no kernel there: the work has to be done by yours at every size"
    return no_launch(trace) or racing_stores(trace.stores, arrays) or _undefined_lanes(pair, size, trace)


def all_bounds(pair: Pair, sizes: Sequence[str], report: Report) -> str:
    """The same at several sizes, in one process: the first of them that owes something."""
    for number, size in enumerate(sizes):
        report(size, number / len(sizes))
        if problem := bounds(pair, size, report):
            return f"at size {size_text(size, pair)}: {problem}"
    return ""


def run_traced(
    pair: Pair, size: str, undefined: float | None = None, draw: str = ""
) -> tuple[Arrays, Answers, AccessTrace]:
    """Inputs that have nothing but NaN around them, the variant's answers with the right ones, what its programs do.

    `draw`: hard values, which are written into the inputs.
    """
    oracle, variant = (load(version.path) for version in pair.versions)
    torch.manual_seed(0)
    inputs = oracle.inputs(**pair.sizes[size], device="cpu")
    if draw:
        stress.write_draw(draw, inputs)
    inputs |= {name: with_margins(value) for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    want = getattr(oracle, "reference", oracle.run)(**(to_float64(inputs) if draw else inputs))
    answers: list[Any] = []
    with CreatedTensors() as made, filled_memory():  # what is read or added to before it is written is NaN
        state = variant.setup(**inputs) if hasattr(variant, "setup") else {}
        trace = trace_accesses(lambda: answers.append(variant.run(**inputs, **state)), {}, undefined=undefined)
    trace.empty.update(made.empty)
    outs = _tensors(answers[0])
    arrays = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    arrays |= {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
    arrays |= {output(pair, number, len(outs)): out for number, out in enumerate(outs)}
    arrays |= {f"tensor {number} that torch made": tensor for number, tensor in enumerate(made.tensors)}
    return arrays, list(zip(outs, _tensors(want), strict=False)), trace


def _first_difference(pair: Pair, answers: Answers, trace: AccessTrace, draw: str = "") -> tuple[str, str]:
    """`first_mismatch` of the first output that has one. Of large values only NaN and infinity are compared."""
    for number, (out, right) in enumerate(answers):
        if out.shape == right.shape:
            near = ANY if draw in stress.LARGE_DRAWS else COARSE if out.element_size() < 4 else FINE
            name, want = output(pair, number, len(answers)), right.to(out.dtype).double()  # infinite if it must be
            is_fresh = out.untyped_storage().data_ptr() in trace.empty
            difference = first_mismatch(name, out, want, trace.accesses, near, _scale(want) if draw else 1.0, is_fresh)
            if any(difference):
                return difference
    return "", ""


def _scale(want: torch.Tensor) -> float:
    """Sums of large terms may cancel: their errors are measured by the size of all."""
    finite = want[want.isfinite()]
    return max(1.0, float(finite.square().mean()) ** 0.5) if finite.numel() else 1.0


def _undefined_lanes(pair: Pair, size: str, trace: AccessTrace) -> str:
    return uses_undefined(lambda value: any(_first_difference(pair, *run_traced(pair, size, value)[1:])), trace)


def _tensors(answer: Any) -> list[torch.Tensor]:
    return [answer] if isinstance(answer, torch.Tensor) else list(answer)
