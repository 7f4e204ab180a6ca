"""Whether an answer equals the baseline's except for rounding: timed answers of a round are compared.

Every round: element by element, quickly. One round per block: as a whole, by the RMS distance, which shows a lower
precision that no single element shows.
"""

import math
from typing import NamedTuple

import torch

from common.checks.arrays import Tree, has_arithmetic, tensors
from common.checks.compare_to_reference import BLOCK, LEAST_CHUNK, compare, compare_forms
from common.checks.tolerance import Custom, Tolerance
from common.record.outcome import Cause, Finding

MORE_RMS = 3  # times what is accepted of a chunk, for the whole: the baseline's error is known only for other inputs


class Error(NamedTuple):
    """The distance of an array from its model, in units of the model's RMS: of the worst value, and RMS of all."""

    largest: float = 0.0
    rms: float = 0.0


Errors = dict[str, Error]  # by path


def compare_elements(out: Tree, other: Tree, precision: str = "", custom: Custom = None) -> Finding | None:
    """What is wrong with `out` compared with another answer of its precision, element by element and quickly."""
    if problem := compare_forms(out, other):
        return problem
    pairs = zip(tensors(out), tensors(other), strict=True)
    if all(_elements_agree(a.reshape(-1), b.reshape(-1), precision, custom) for (_, a), (_, b) in pairs):
        return None
    return compare(out, other, None, precision, custom)  # slower: names the place


def _elements_agree(out: torch.Tensor, other: torch.Tensor, precision: str, custom: Custom) -> bool:
    tolerance, step = Tolerance.for_dtype(out.dtype, precision, custom), BLOCK[out.device.type]
    if not tolerance.precision:
        return torch.equal(out, other)
    for parts in zip(out.split(step), other.split(step), strict=True):
        a, b = (x if has_arithmetic(x) else x.float() for x in parts)
        scale = float(b.float().square().mean()) ** 0.5
        allowed = b.abs().mul_(tolerance.rtol).add_(tolerance.atol * scale)
        if not bool(((a - b).abs_() <= allowed).all()):  # NaN and inf are near nothing
            return False
    return True


def drift(out: Tree, base: Tree, error: Errors, precision: str = "", custom: Custom = None) -> Finding | None:
    """How an answer is farther from the baseline's as a whole than both errors explain; None if it is not.

    `error`: by path, the baseline's own (reference_errors), from other inputs.
    """
    models = dict(tensors(base))
    for path, value in tensors(out):
        tolerance = Tolerance.for_dtype(value.dtype, precision, custom)
        if tolerance.precision and path in error and value.numel() >= LEAST_CHUNK:  # sums of fewer may cancel by chance
            accepted = MORE_RMS * max(tolerance.times * error[path].rms, tolerance.floor) + error[path].rms
            if (distance := _distance(value, models[path]).rms) > accepted:
                facts = {"distance": distance, "accepted": accepted, "precision": tolerance.precision}
                return Finding(Cause.WRONG_DISTANCE, facts)
    return None


def reference_errors(out: Tree, reference: Tree) -> Errors:
    """The errors of each floating array of an answer, by path. (All others must be equal.)"""
    expected = dict(tensors(reference))
    return {path: _distance(value, expected[path]) for path, value in tensors(out) if value.is_floating_point()}


def _distance(value: torch.Tensor, model: torch.Tensor) -> Error:
    """How far an array is from its model. Values that are not finite count 0: other tests compare them."""
    error_sum, size_sum, largest, step = 0.0, 0.0, 0.0, BLOCK[value.device.type]
    for start in range(0, value.numel(), step):
        a, b = (x.reshape(-1)[start : start + step].to(value.device).double() for x in (value, model))
        squares, sizes = (x.square().nan_to_num_(0.0, 0.0, 0.0) for x in (a - b, b))
        error_sum, size_sum = error_sum + float(squares.sum()), size_sum + float(sizes.sum())
        largest = max(largest, float(squares.max()))
    if not size_sum:
        return Error()
    return Error(math.sqrt(largest / size_sum * value.numel()), math.sqrt(error_sum / size_sum))
