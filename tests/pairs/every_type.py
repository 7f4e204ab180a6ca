"""Run as a program: each operator on operands of all types, in Triton's interpreter and in the faster one.

Prints how many outcomes were compared, and those that differ.
"""

import itertools
import operator
import sys
import warnings
from dataclasses import replace

import torch
import triton
import triton.language as tl

from common.pairs import interpreter

TYPES = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
NUMBERS = [True, 3, -3, 2**40, -0.0, 2.5]
OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.and_),
    *(operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.ge, operator.eq, operator.ne),
    *("minimum", "maximum"),  # which the interpreter replaces
]
outcomes = []


def keep(apply, *operands):
    """Type, shape, and every bit of what comes out, or what Triton says instead."""
    try:
        result = apply(*operands)
        shape = tuple(getattr(size, "value", size) for size in result.shape)
        outcomes.append((result.dtype.name, shape, str(result.handle.data.dtype), result.handle.data.tobytes()))
    except Exception as error:  # noqa: BLE001
        outcomes.append(repr(error))


def look(x, y, pointer):
    shapes = [(x[:, None], y[None, :]), (x, y), (x, tl.arange(0, 16)), (tl.max(tl.arange(0, 8), 0), y), (pointer, x)]
    pairs = [*shapes, *((x, number) for number in NUMBERS)]
    for apply, (left, right) in itertools.product(OPERATORS, pairs):
        function = getattr(tl, apply) if isinstance(apply, str) else apply
        keep(function, left, right)
        keep(function, right, left)
    for apply in (lambda: x.to(y.dtype), lambda: x[:, None].to(y.dtype), lambda: x.to(y.dtype, "rtz"), lambda: -x):
        keep(apply)


@triton.jit
def kernel(x_ptr, y_ptr, LOOK: tl.constexpr):
    LOOK(tl.load(x_ptr + tl.arange(0, 8)), tl.load(y_ptr + tl.arange(0, 8)), x_ptr)


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    values = [(3 * torch.randn(8)).abs().clamp(max=200).to(dtype) for dtype in TYPES]
    builder = sys.modules["triton.runtime.interpreter"].interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)  # which the faster one leaves out
    runs = []
    for _ in range(2):
        outcomes.clear()
        for x, y in itertools.product(values, values):
            kernel[(1,)](x, y, look)
        runs.append([*outcomes])
        interpreter.speed_up_interpreter()
    differing = [pair for pair in zip(*runs, strict=True) if pair[0] != pair[1]]
    print(len(outcomes), differing[:5])


main()
