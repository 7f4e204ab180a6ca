"""Where several answers are right: beside an edge of rounding, and for indices of equal values.

Rounding a value to an integer, comparing it with a threshold, or choosing the smallest of several is a jump: an input
that differs by a rounding gives another answer, which is as right. Such an element is compared with the answer to
inputs that are a rounding away. An index of another element of the same value is right, too.
"""

from collections.abc import Sequence

import torch

from common.checks.arrays import Tree, as_tensor, clone, is_array, leaves, tensors
from common.checks.tolerance import Custom, Tolerance


def resolve(
    out: Tree, reference: Tree, neighbours: Sequence[Tree], inputs: Tree, precision: str = "", custom: Custom = None
) -> Tree:
    """A copy of `out` that has the reference's value where its own is as right.

    `neighbours`: answers to inputs that are a rounding away. `inputs`: those that indices may point into.
    """
    out, expected = clone(out), dict(leaves(reference))
    others = [dict(leaves(tree)) for tree in neighbours]
    for path, leaf in leaves(out):
        if not is_array(leaf) or not is_array(expected.get(path)):
            continue
        value, model = as_tensor(leaf), as_tensor(expected[path]).to(as_tensor(leaf).device)
        if value.shape != model.shape or not value.numel():
            continue
        tolerance = Tolerance.for_dtype(value.dtype, precision, custom)
        near_values = [as_tensor(other[path]).to(value.device) for other in others if is_array(other.get(path))]
        may_point = not (value.is_floating_point() or value.dtype == torch.bool)
        is_resolved = may_point and _point_to_equals(value, model, inputs)
        for near in [near for near in near_values if near.shape == value.shape and not is_resolved]:
            value.copy_(_across_jumps(value, model, near, tolerance))
        if is_resolved or (may_point and _point_to_equals(value, model, inputs)):
            value.copy_(model)
    return out


def _across_jumps(value: torch.Tensor, model: torch.Tensor, near: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    """`value`, less the jump from `model` to `near` where there is one and `value` lies on its far side."""
    if not tolerance.precision:
        whole = torch.int64  # CUDA has no `where` for unsigned integers
        return torch.where(value == near.to(value.dtype), model.to(whole), value.to(whole)).to(value.dtype)
    exact, model, near = value.double(), model.double(), near.double()
    jump, scale = near - model, float(model.square().mean()) ** 0.5
    is_far = (jump.abs() > tolerance.rtol * model.abs() + tolerance.atol * scale) & jump.isfinite()
    return torch.where(is_far & ((exact - near).abs() < (exact - model).abs()), exact - jump, exact).to(value.dtype)


def _point_to_equals(value: torch.Tensor, model: torch.Tensor, inputs: Tree) -> bool:
    """Whether both, taken as indices into one of the inputs, choose equal values everywhere.

    They choose along an axis (as of `argmax`, `topk` and `sort`) or whole rows, and choose none twice unless `model`
    does.
    """
    indices = torch.stack([value.long(), model.long()])
    (low, high), differ = (int(edge) for edge in indices.aminmax()), value != model
    for _, x in tensors(inputs):
        axes = [axis for axis, size in enumerate(x.shape) if low >= 0 and high < size]
        if 0 in axes and _are_equal(*x[indices[:, differ]]) and _are_distinct(indices[0], indices[1], -1):
            return True
        for axis in axes if value.dim() in (x.dim(), x.dim() - 1) else ():
            pair = indices if value.dim() == x.dim() else indices.unsqueeze(axis + 1)
            is_along_axis = _without(axis, x) == _without(axis, pair[0])
            if (
                is_along_axis
                and _are_equal(*(x.gather(axis, i) for i in pair))
                and _are_distinct(pair[0], pair[1], axis)
            ):
                return True
    return False


def _without(axis: int, x: torch.Tensor) -> list[int]:
    """A shape, but for one axis."""
    return [*x.shape[:axis], *x.shape[axis + 1 :]]


def _are_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | (a != a) & (b != b)).all())


def _are_distinct(value: torch.Tensor, model: torch.Tensor, axis: int) -> bool:
    """Whether indices repeat along an axis only if those of the model do."""

    def repeats(indices: torch.Tensor) -> bool:
        return bool((indices.sort(axis).values.diff(dim=axis) == 0).any())

    return not value.dim() or repeats(model) or not repeats(value)
