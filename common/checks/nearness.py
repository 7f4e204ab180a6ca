"""Whether an answer equals the baseline's except for rounding: timed answers of a round are compared.

Every round: element by element, quickly. One round per block: as a whole, by the RMS distance, which shows a lower
precision that no single element shows.
"""

import math

import torch

from common.checks.arrays import Tree, computes, tensors
from common.checks.comparison import BLOCK, compare, same_form
from common.checks.tolerance import Custom, Tolerance

Errors = dict[str, float]  # by path
MORE_RMS = 3  # times what is accepted of a chunk, for the whole: the baseline's error is known only for other inputs


def near(out: Tree, other: Tree, precision: str = "", custom: Custom = None) -> str:
    """What is wrong with `out` compared with another answer of its precision, element by element and quickly."""
    if problem := same_form(out, other):
        return problem
    pairs = zip(tensors(out), tensors(other), strict=True)
    if all(_is_near(mine.reshape(-1), theirs.reshape(-1), precision, custom) for (_, mine), (_, theirs) in pairs):
        return ""
    return compare(out, other, None, precision, custom)  # slower: names the place


def _is_near(out: torch.Tensor, other: torch.Tensor, precision: str, custom: Custom) -> bool:
    tolerance, step = Tolerance.of(out.dtype, precision, custom), BLOCK[out.device.type]
    if not tolerance.precision:
        return torch.equal(out, other)
    for parts in zip(out.split(step), other.split(step), strict=True):
        a, b = (x if computes(x) else x.float() for x in parts)
        scale = float(b.float().square().mean()) ** 0.5
        allowed = b.abs().mul_(tolerance.rtol).add_(tolerance.atol * scale)
        if not bool(((a - b).abs_() <= allowed).all()):  # NaN and inf are near nothing
            return False
    return True


def drift(out: Tree, base: Tree, error: Errors, precision: str = "", custom: Custom = None) -> str:
    """How an answer is farther from the baseline's as a whole than both errors explain; empty if it is not.

    `error`: by path, the baseline's own (rms_errors), from other inputs.
    """
    models = dict(tensors(base))
    for path, value in tensors(out):
        tolerance = Tolerance.of(value.dtype, precision, custom)
        if tolerance.precision and path in error:
            accepted = MORE_RMS * max(tolerance.times * error[path], tolerance.floor) + error[path]
            if (distance := _rms_distance(value, models[path])) > accepted:
                return f"relative RMS distance {distance:.2g}, accepted {accepted:.2g}: not {tolerance.precision}"
    return ""


def rms_errors(out: Tree, truth: Tree) -> Errors:
    """The relative RMS error of each floating array of an answer, by path."""
    exact = dict(tensors(truth))
    return {path: _rms_distance(value, exact[path]) for path, value in tensors(out) if value.is_floating_point()}


def _rms_distance(value: torch.Tensor, model: torch.Tensor) -> float:
    """The RMS distance, relative to the model's RMS. Values that are not finite count 0: other tests compare them."""
    apart, size, step = 0.0, 0.0, BLOCK[value.device.type]
    for start in range(0, value.numel(), step):
        a, b = (x.reshape(-1)[start : start + step].to(value.device).double() for x in (value, model))
        apart += float((a - b).nan_to_num_(0.0, 0.0, 0.0).square().sum())
        size += float(b.nan_to_num(0.0, 0.0, 0.0).square().sum())
    return math.sqrt(apart / size) if size else 0.0
