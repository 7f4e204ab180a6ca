"""Sums, maxima and logsumexp: torch's functions, and for our kernels one step of a lane and the last step of all."""

import torch
import triton
import triton.language as tl

TORCH = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "logsumexp": torch.logsumexp}
AXES = {"rows": 0, "columns": 1, "all": (0, 1)}
LOWEST = tl.constexpr(-3.4028234663852886e38)  # of float32: a maximum so far that may be subtracted from -inf
INF = float("inf")
# The maximum so far, and what fills up a block
EMPTY = {"sum": (0.0, 0.0), "max": (-INF, -INF), "logsumexp": (LOWEST.value, -INF)}


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def take(acc_max, acc_sum, x, OP: tl.constexpr):
    """The maxima and sums so far, and another x for each; logsumexp's sum is that of exp(x - largest)."""
    if OP == "sum":
        acc_sum += x
    elif OP == "max":
        acc_max = larger(acc_max, x)
    else:
        change = tl.exp(-tl.abs(x - acc_max))
        acc_sum = tl.where(x > acc_max, acc_sum * change + 1, acc_sum + change)
        acc_max = larger(acc_max, x)
    return acc_max, acc_sum


@triton.jit
def alone(x, OP: tl.constexpr):
    """The maxima and sums of lanes that have one x each. Logsumexp's sum is exp(x - x)."""
    acc_max, acc_sum = x, x
    if OP == "logsumexp":
        acc_sum = 1.0
    return acc_max, acc_sum


@triton.jit
def finish(acc_max, acc_sum, scale, OP: tl.constexpr, AXIS: tl.constexpr = 0):
    if OP == "sum":
        result = tl.sum(acc_sum, AXIS) * scale
    elif OP == "max":
        result = tl.reduce(acc_max, AXIS, larger)
    else:
        x_max = larger(tl.reduce(acc_max, AXIS, larger), LOWEST)  # -inf - -inf would be NaN
        weights = tl.exp(acc_max - (x_max if AXIS == 0 else x_max[:, None]))
        result = tl.where(x_max == float("inf"), x_max, x_max + tl.log(tl.sum(acc_sum * weights, AXIS)))
    return result
