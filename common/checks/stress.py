"""Values besides the standard normal, on which a right version is right, too: the stress draws.

Each draw writes other values into an array, in place, or changes its memory layout. Every version must agree wherever
the baseline agrees with the float64 reference. A variant that need not support a draw leaves it out with
STRESS = {"draw": "why"}; the names are also in pairs/contract.py.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from common.checks.arrays import (
    Tree,
    as_tensor,
    clone,
    has_arithmetic,
    has_repeats,
    is_cupy,
    map_arrays,
    tensors,
    to_float64,
)
from common.checks.guards import poison

SPARSE = 29  # one of this many values is special: a prime, so that its column changes from row to row
ROUNDINGS = 8  # large values count only if this many roundings of the inputs do not change the answer


WriteDraw = Callable[[torch.Tensor], object]


def _scale(factor: float) -> WriteDraw:
    return lambda x: x.mul_(factor).clamp_(torch.finfo(x.dtype).min, torch.finfo(x.dtype).max)


def _sprinkle(*values: float) -> WriteDraw:
    """Write one of these values here and there, in arrays with room for others."""

    def write(x: torch.Tensor) -> None:
        flat = x.flatten()
        for number, value in enumerate(values):
            flat[SPARSE // 2 + number * SPARSE :: SPARSE * len(values)] = value
        x.copy_(flat.view(x.shape))

    return write


def _oppose_halves(x: torch.Tensor) -> None:
    """One sign in half of the rows, and in two quarters of the columns: sums are small although their terms are not."""
    x.abs_().add_(1)
    if x.dim():
        quarter = x.shape[-1] // 4
        x[..., :quarter].neg_()
        x[..., 2 * quarter : 3 * quarter].neg_()
    if x.dim() > 1:
        x[..., : x.shape[-2] // 2, :].neg_()


STRIDES = ("arrays with gaps", "arrays with wide gaps")  # the second: rows begin at multiples of WIDE elements
WIDE = 64
IN_ROWS, IN_THE_MIDDLE = "arrays with gaps in rows", "arrays with gaps in middle axes"
TRANSPOSED, EXPANDED = "transposed arrays", "expanded arrays"
# Layouts that a version may refuse, by an error. -> the fewest axes of an array that can have it
LAYOUTS = {IN_ROWS: 2, IN_THE_MIDDLE: 3, TRANSPOSED: 2, EXPANDED: 2}
OFFSETS = "offsets beyond 32 bits"  # no draw: a size that needs no memory (common/traffic/wide_offsets.py)
# Equal values cancel: answers may be only rounding, and errors are measured by ordinary answers' size
FLAT_DRAWS = ("zeros", "a constant", EXPANDED)
# A softmax of these picks one value: errors do not average out, and a rounding may change which value it is
LARGE_DRAWS = ("values around 100", "values around 10,000")
FLOATS: dict[str, WriteDraw] = {
    "values around 100": _scale(100.0),
    "values around 10,000": _scale(1e4),
    "values around 0.001": _scale(1e-3),
    "values near -100": lambda x: x.sub_(100),
    "zeros": lambda x: x.zero_(),
    "a constant": lambda x: x.fill_(1.5),
    "halves of opposite sign": _oppose_halves,
    "-0.0 and denormals": _sprinkle(-0.0, 1e-40, -1e-40),
    "-inf": _sprinkle(-math.inf),
    "NaN": _sprinkle(math.nan),
    "arrays of one sign": lambda x: x.abs_().add_(1).mul_(-4),  # every second: positive, see `write`
}
INTEGERS: dict[str, WriteDraw] = {  # of those that there are: they may be indices
    "the largest integers": lambda x: x.fill_(x.max()),
    "the smallest integers": lambda x: x.fill_(x.min()),
}
# For a new operation or type: its indexing, its overflow, its fill of a tail, its treatment of NaN
TELLING = (STRIDES[0], "values around 10,000", "values near -100", "NaN")


def suitable_draws(tree: Tree) -> tuple[str, ...]:
    """The draws for which there are arrays. Integers (bytes to be counted, for example) get theirs at every size."""
    arrays = [t for _, t in tensors(tree)]
    floats = tuple(draw for draw in FLOATS if draw != "-inf" or all(map(_products_keep_infinity, arrays)))
    return floats * any(map(has_arithmetic, arrays)) + tuple(INTEGERS) * any(map(_is_integer, arrays))


def _products_keep_infinity(t: torch.Tensor) -> bool:
    """Whether torch's own product of this type and device is right for -inf. (On some CPUs that of bf16 is not.)"""
    return not has_arithmetic(t) or _keeps_infinity(t.dtype, t.device)


@cache
def _keeps_infinity(dtype: torch.dtype, device: torch.device) -> bool:
    x = torch.ones(64, 64, dtype=dtype, device=device)
    x[0, 0] = -math.inf
    return bool(((x @ torch.ones_like(x))[0] == -math.inf).all())


def write_draw(draw: str, tree: Tree) -> bool:
    """Write a draw into all arrays of its kind. Returns whether there is one."""
    targets = [t for _, t in tensors(tree) if t.numel() and (has_arithmetic(t) if draw in FLOATS else _is_integer(t))]
    for number, tensor in enumerate(targets):
        (FLOATS | INTEGERS)[draw](tensor)
        if draw == "arrays of one sign" and number % 2:
            tensor.neg_()  # all products of two arrays are negative: a forgotten 0 is then the largest
    return bool(targets)


def _is_integer(t: torch.Tensor) -> bool:
    return not (t.is_floating_point() or t.is_complex() or t.dtype == torch.bool)


def perturb(tree: Tree) -> None:
    """Vary arrays with a single value, such as gains of 1 and shifts of 0: a version may leave out what they do."""
    for _, t in tensors(tree):
        if has_arithmetic(t) and t.numel() > 1 and not has_repeats(t) and bool((t == t[(0,) * t.dim()]).all()):
            t.add_(torch.rand_like(t) * 0.5)


def perturb_by_roundings(tree: Tree, seed: int = 0, sign: int = 1) -> Tree:
    """A float64 copy in which each value is off by a few roundings of float32 (of float64 for float64).

    `sign`: -1 moves each value to the other side.
    """
    copy = clone(to_float64(tree))
    for (_, x), (_, t) in zip(tensors(tree), tensors(copy), strict=True):
        if t.is_floating_point():
            step = ROUNDINGS * torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
            generator = torch.Generator(t.device).manual_seed(seed)  # separate from the versions' random numbers
            noise = torch.randn(t.shape, generator=generator, device=t.device, dtype=torch.float64)
            t.mul_(1 + sign * step * noise)
    return copy


def change_layout(draw: str, tree: Tree) -> Tree:
    """The same values in another memory layout, with NaN in all gaps; an array that cannot have it stays itself.

    Of STRIDES the rows begin at no multiple of 16 bytes, or all at one: a version that tests only alignment copies the
    first and takes the second for contiguous. CuPy arrays stay: a raw kernel gets only an address, and reading beside
    its array would end the process.
    """

    def with_layout(x: Any) -> Any:
        is_tensor = isinstance(x, torch.Tensor)
        if x.ndim < LAYOUTS.get(draw, 1) or type(x) is torch.nn.Parameter or is_cupy(x):
            return x
        if draw == EXPANDED:
            return x.detach()[:1].clone().expand(x.shape).requires_grad_(x.requires_grad) if is_tensor else x
        shape, select = _place(draw, *x.shape)
        buffer: Any = x.new_empty(shape) if is_tensor else np.empty(shape, x.dtype)
        poison(as_tensor(buffer))  # 0 times what lies in a gap is then no 0
        part = buffer.swapaxes(-1, -2) if draw == TRANSPOSED else buffer[select]
        as_tensor(part).copy_(as_tensor(x))
        return part.requires_grad_(x.requires_grad) if is_tensor else part

    return map_arrays(with_layout, tree)


def _place(draw: str, *shape: int) -> tuple[tuple[int, ...], Any]:
    """(The shape of a buffer, where in it an array of this shape has its place.)"""
    *outer, n = shape
    if draw == TRANSPOSED:
        return (*outer[:-1], n, outer[-1]), ...
    if draw == IN_THE_MIDDLE:
        first, *middle = outer
        return (first, *(size + 1 for size in middle), n), (slice(None), *map(slice, middle))
    if draw == IN_ROWS or not outer:
        return (*outer, 2 * n + 1), (..., slice(1, None, 2))
    begin, width = (1, n + 3) if draw == STRIDES[0] else (0, (n // WIDE + 2) * WIDE)
    return (*outer, width), (..., slice(begin, begin + n))


def repeat_first(tree: Tree) -> None:
    """Write the first part of each array with several axes over the others, as an expanded array has it."""
    for _, t in tensors(tree):
        if t.dim() >= LAYOUTS[EXPANDED] and t.numel():
            t.copy_(t[:1].clone().expand_as(t))
