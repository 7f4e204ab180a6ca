"""Whether an answer equals the baseline's except for rounding: timed answers of a round are compared.

Every round: element by element, quickly. One round per block: as a whole, by the RMS distance, which shows a lower
precision that no single element shows.
"""

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import torch

from common.checks.arrays import BLOCK, Tree, batches, has_arithmetic, join, tensors
from common.checks.compare_to_reference import LEAST_CHUNK, compare, compare_forms
from common.checks.tolerance import Custom, Tolerance
from common.record.outcome import Cause, Finding

MORE_RMS = 3  # times what is accepted of a chunk, for the whole: the baseline's error is known only for other inputs


class Error(NamedTuple):
    """The distance of an array from its model, in units of the model's RMS: of the worst value, and RMS of all."""

    largest: float = 0.0
    rms: float = 0.0


Errors = dict[str, Error]  # by path
Rows = dict[str, tuple[torch.Tensor, torch.Tensor]]  # path -> an array and its model
Part = tuple[str, torch.Tensor, torch.Tensor]  # path, a stretch of an array, and of its model


def compare_elements(out: Tree, other: Tree, precision: str = "", custom: Custom = None) -> Finding | None:
    """What is wrong with `out` compared with another answer of its precision, element by element and quickly."""
    if problem := compare_forms(out, other):
        return problem
    rows = {path: (value, model) for (path, value), (_, model) in zip(tensors(out), tensors(other), strict=True)}
    if all(_elements_agree(batch, precision, custom) for batch in batches(_parts(rows), itemgetter(1))):
        return None
    return compare(out, other, None, precision, custom)  # slower: names the place


def _elements_agree(batch: list[Part], precision: str, custom: Custom) -> bool:
    """Whether parts of answers of one type agree. Each part's errors are measured by its own RMS."""
    tolerance = Tolerance.for_dtype(batch[0][1].dtype, precision, custom)
    if not tolerance.precision:
        return all(torch.equal(a, b) for _, a, b in batch)
    _, *columns = zip(*batch, strict=True)
    sizes = [part.numel() for part in columns[0]]
    a, b = map(_joined, columns)
    size = b.abs()
    excess = torch.sub((a - b).abs_(), size, alpha=tolerance.rtol).float()
    norms, largest = torch._foreach_norm(size.float().split(sizes)), torch._foreach_max(excess.split(sizes))
    allowed = [tolerance.atol / math.sqrt(count) for count in sizes]
    found = zip(*torch.stack([*norms, *largest]).view(2, -1).tolist(), allowed, strict=True)
    return all(worst <= share * norm for norm, worst, share in found)  # NaN and inf are near nothing


def drift(out: Tree, base: Tree, error: Errors, precision: str = "", custom: Custom = None) -> Finding | None:
    """How an answer is farther from the baseline's as a whole than both errors explain; None if it is not.

    `error`: by path, the baseline's own (reference_errors), from other inputs.
    """
    models, rows, accepted = dict(tensors(base)), Rows(), dict[str, float]()
    for path, value in tensors(out):
        tolerance = Tolerance.for_dtype(value.dtype, precision, custom)
        if tolerance.precision and path in error and value.numel() >= LEAST_CHUNK:  # sums of fewer may cancel by chance
            rows[path] = value, models[path]
            accepted[path] = MORE_RMS * max(tolerance.times * error[path].rms, tolerance.floor) + error[path].rms
    for path, (_, rms) in _distances(rows).items():
        if rms > accepted[path]:
            used = Tolerance.for_dtype(rows[path][0].dtype, precision, custom).precision
            return Finding(Cause.WRONG_DISTANCE, {"distance": rms, "accepted": accepted[path], "precision": used})
    return None


def reference_errors(out: Tree, reference: Tree) -> Errors:
    """The errors of each floating array of an answer, by path. (All others must be equal.)"""
    expected = dict(tensors(reference))
    return _distances({path: (value, expected[path]) for path, value in tensors(out) if value.is_floating_point()})


def _distances(rows: Rows) -> Errors:
    """How far arrays are from their models, by path. Values that are not finite count 0: other tests compare them."""
    sums = dict.fromkeys(rows, (0.0, 0.0, 0.0))  # squares of errors, squares of the model, the largest error
    for batch in batches(_parts(rows), itemgetter(1)):
        paths, *columns = zip(*batch, strict=True)
        sizes = [part.numel() for part in columns[0]]
        a, b = (_joined(column).double() for column in columns)
        error, size = (x.nan_to_num(0.0, 0.0, 0.0).split(sizes) for x in (a - b, b))
        norms = [*torch._foreach_norm(error), *torch._foreach_norm(size), *torch._foreach_norm(error, math.inf)]
        found = zip(*torch.stack(norms).view(3, -1).tolist(), strict=True)
        for path, (error_norm, size_norm, largest) in zip(paths, found, strict=True):
            squares, model_squares, most = sums[path]
            sums[path] = squares + error_norm**2, model_squares + size_norm**2, max(most, largest)
    errors = dict.fromkeys(rows, Error())
    for path, (squares, model_squares, most) in sums.items():
        if model_squares:
            rms = math.sqrt(model_squares / rows[path][0].numel())
            errors[path] = Error(most / rms, math.sqrt(squares / model_squares))
    return errors


def _joined(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    return join([x if has_arithmetic(x) else x.float() for x in parts])


def _parts(rows: Rows) -> Iterator[Part]:
    for path, (value, model) in rows.items():
        step = BLOCK[value.device.type]
        for start in range(0, value.numel(), step):
            a, b = (x.reshape(-1)[start : start + step].to(value.device) for x in (value, model))
            yield path, a, b
