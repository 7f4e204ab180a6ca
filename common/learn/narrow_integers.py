"""A kernel whose integers of 32 bits keep fewer: offsets wrap around in a small array, as they do beyond 2^31 elements.

Where the offsets of a large array lie inside of it, nothing shows that they are of other elements, and its memory and
its values are out of reach. With 20 bits an array of a million elements is as large: it is computed, and compared.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, partialmethod
from typing import Any
from unittest.mock import patch

import torch

from common.checks.kernel_memory import cause_of
from common.isolation import worker
from common.learn.failure_text import size_text
from common.learn.first_mismatch import first_mismatch
from common.learn.memcheck import OutOfBounds, run_in_bounds
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair, load

DEADLINE_S = 60.0  # without a word: each size is one
BITS = 32  # of the integers that are narrowed, with and without a sign


def wrapped_answer(pair: Pair, bits: dict[str, int]) -> str:
    """What is wrong with the answer of the pair's variant at a size where integers keep so many bits; empty if nothing.

    Of one output, by the solution's `reference`. `bits`: by size, which has more than half as many elements as they
    count, and fewer than all.
    """
    try:
        text: str = worker.call(_wrapped_answer, pair, bits, environment=INTERPRETED, deadline_s=DEADLINE_S)
    except worker.ChildFailed as death:
        text = f"where integers of {BITS} bits are narrowed to {[*bits.values()]} it crashes: {death}"
    return text


def _wrapped_answer(pair: Pair, bits: dict[str, int], report: worker.Report) -> str:
    oracle, variant = (load(version.path) for version in pair.versions)
    for number, (size, width) in enumerate(bits.items()):
        report(size, number / len(bits))
        torch.manual_seed(0)
        inputs = oracle.inputs(**pair.sizes[size], device="cpu")
        right = oracle.reference(**inputs)
        try:
            with narrow_integers(width):
                answer, *_ = run_in_bounds(variant, inputs)
        except Exception as error:
            if not (refused := cause_of(error, OutOfBounds)):
                raise
            problem = str(refused)
        else:
            problem, _ = first_mismatch("answer", answer, right.double(), [], is_fresh=True)
        if problem:
            model = f"at size {size_text(size, pair)}, with {width} bits for integers of {BITS}"
            end = "" if problem.endswith("?") else "."
            return f"{model}: {problem}{end} So it is in an array of 2^31 elements: does an offset still wrap around?"
    return ""


@contextmanager
def narrow_integers(bits: int) -> Iterator[None]:
    """Inside, what Triton's interpreter computes in 32 bits wraps around at so many, with and without a sign.

    Constants near a limit of 32 bits become as near a limit of the narrower integers.
    """
    from triton.runtime import interpreter

    handle, builder, half = interpreter.TensorHandle, interpreter.InterpreterBuilder, 1 << (bits - 1)
    original = handle.__post_init__

    def wrap(self: Any) -> None:
        original(self)
        kind = str(self.dtype)
        if kind == f"int{BITS}":
            self.data = ((self.data + half) & (2 * half - 1)) - half
        elif kind == f"uint{BITS}":
            self.data = self.data & (2 * half - 1)

    def scaled(get: Callable[..., Any], self: Any, value: int) -> Any:
        return get(self, value >> (BITS - bits) if abs(value) >= 1 << (BITS - 2) else value)

    names = [f"get_{sign}int{width}" for sign in ("", "u") for width in (BITS, 2 * BITS)]
    constants: dict[str, Any] = {name: partialmethod(partial(scaled, getattr(builder, name))) for name in names}
    with patch.object(handle, "__post_init__", wrap), patch.multiple(builder, **constants):
        yield
