"""Values besides the standard normal, on which a version that is right is right, too.

Each draw writes other values into an array, in place. Where the baseline and the reference in float64 agree on them,
every version has to. A pair leaves one out by STRESS = {"draw": "why"}, in the version that it is not meant for.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import torch

from common.checks.arrays import Tree, as_tensor, computes, map_arrays, repeats, tensors

SPARSE = 29  # of so many values one is special: a prime, so that it comes to another place of each row


Write = Callable[[torch.Tensor], object]


def _scaled(factor: float) -> Write:
    return lambda x: x.mul_(factor).clamp_(torch.finfo(x.dtype).min, torch.finfo(x.dtype).max)


def _sprinkled(*values: float) -> Write:
    """Here and there one of these, in arrays that have room for others beside them."""

    def write(x: torch.Tensor) -> None:
        flat = x.flatten()
        for place, value in enumerate(values):
            flat[SPARSE // 2 + place * SPARSE :: SPARSE * len(values)] = value
        x.copy_(flat.view(x.shape))

    return write


def _opposed(x: torch.Tensor) -> None:
    """Of one sign in a half of the rows, and in two quarters of the columns: sums are small, what they add is not."""
    x.abs_().add_(1)
    if x.dim():
        quarter = x.shape[-1] // 4
        x[..., :quarter].neg_()
        x[..., 2 * quarter : 3 * quarter].neg_()
    if x.dim() > 1:
        x[..., : x.shape[-2] // 2, :].neg_()


def _end(largest: bool) -> Write:
    """The largest or the smallest of the integers that there are: they may be indices."""
    return lambda x: x.fill_(x.max() if largest else x.min())


STRIDES = "arrays with gaps"
FLAT = ("zeros", "a constant")  # of which an answer may be all rounding: an error is measured by ordinary answers
FLOATS: dict[str, Write] = {
    "values around 100": _scaled(100.0),
    "values around 10,000": _scaled(1e4),
    "values around 0.001": _scaled(1e-3),
    "values near -100": lambda x: x.sub_(100),
    "zeros": lambda x: x.zero_(),
    "a constant": lambda x: x.fill_(1.5),
    "halves of opposite sign": _opposed,
    "-0.0 and denormals": _sprinkled(-0.0, 1e-40, -1e-40),
    "-inf": _sprinkled(-math.inf),
    "NaN": _sprinkled(math.nan),
}
INTEGERS: dict[str, Write] = {
    "the largest integers": _end(largest=True),
    "the smallest integers": _end(largest=False),
}
VALUES = (*FLOATS, *INTEGERS)
# Where an operation or a type has lines of its own: what they index, overflow, fill a tail with, and make of NaN
TELLING = (STRIDES, "values around 10,000", "values near -100", "NaN")


def write(draw: str, tree: Tree) -> bool:
    """Write a draw into all arrays of its kind; is there one?"""
    wanted = [t for _, t in tensors(tree) if t.numel() and (computes(t) if draw in FLOATS else _counts(t))]
    for tensor in wanted:
        (FLOATS | INTEGERS)[draw](tensor)
    return bool(wanted)


def _counts(t: torch.Tensor) -> bool:
    return not (t.is_floating_point() or t.is_complex() or t.dtype == torch.bool)


def perturb(tree: Tree) -> None:
    """Give arrays of one value, as gains of 1 and shifts of 0, several: a version may have left out what they do."""
    for _, t in tensors(tree):
        if computes(t) and t.numel() > 1 and not repeats(t) and bool((t == t[(0,) * t.dim()]).all()):
            t.add_(torch.rand_like(t) * 0.5)


def spread(tree: Tree) -> Tree:
    """The same values with gaps between rows (in a single row between values), beginning at no multiple of 16 bytes."""

    def one(x: Any) -> Any:
        if not x.ndim or type(x) is torch.nn.Parameter:
            return x
        shape = (*x.shape[:-1], x.shape[-1] + 3) if x.ndim > 1 else (2 * x.shape[0] + 1,)
        is_tensor = isinstance(x, torch.Tensor)
        wide = x.new_empty(shape) if is_tensor else sys.modules[type(x).__module__].empty(shape, x.dtype)
        part = wide[..., 1:-2] if x.ndim > 1 else wide[1::2]
        as_tensor(part).copy_(as_tensor(x))
        return part.requires_grad_(x.requires_grad) if is_tensor else part

    return map_arrays(one, tree)
