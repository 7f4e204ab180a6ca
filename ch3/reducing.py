"""Sums, maxima and logsumexp: as torch knows them, and what a lane does with an element and lanes with one another."""

import torch
import triton
import triton.language as tl

TORCH = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "logsumexp": torch.logsumexp}
AXES = {"rows": 0, "columns": 1, "all": (0, 1)}
LOWEST, INF = -3.4028234663852886e38, float("inf")  # of float32: a maximum so far that may be subtracted from -inf
EMPTY = {"sum": (0.0, 0.0), "max": (-INF, -INF), "logsumexp": (LOWEST, -INF)}  # maximum so far; what fills up a block


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def take(largest, total, x, OP: tl.constexpr):
    """The maxima and sums so far, and another x for each; logsumexp's sum is that of exp(x - largest)."""
    if OP == "sum":
        total += x
    elif OP == "max":
        largest = larger(largest, x)
    else:
        change = tl.exp(-tl.abs(x - largest))
        total = tl.where(x > largest, total * change + 1, total + change)
        largest = larger(largest, x)
    return largest, total


@triton.jit
def finish(largest, total, scale, OP: tl.constexpr):
    if OP == "sum":
        result = tl.sum(total, 0) * scale
    elif OP == "max":
        result = tl.reduce(largest, 0, larger)
    else:
        top = tl.reduce(largest, 0, larger)
        result = tl.where(top == float("inf"), top, top + tl.log(tl.sum(total * tl.exp(largest - top), 0)))
    return result
