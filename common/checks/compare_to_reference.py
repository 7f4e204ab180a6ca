"""Whether an answer equals the float64 reference except for rounding. (The baseline's answer: compare_to_baseline.)

Two tests are needed. Every element: |out - reference| <= atol + rtol * |reference|, where atol is scaled by the
reference's RMS in its chunk, because sums cancel. Every chunk: its RMS error is at most a few times the baseline's
(tolerance.py; at least a few eps), so that a tolerance hides neither lower precision nor a wrong tail. NaN and inf must
be at the reference's places.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch

from common.checks.arrays import Tree, as_tensor, is_array, is_plain, leaves
from common.checks.tolerance import Custom, Tolerance
from common.record.outcome import Cause, Finding

WRONG, MOST_WRONG = 0.5, 0.01  # off by half of their own size; the share of such values that rounding may cause
SMALL_VALUES = 2  # times a relative RMS error: the share of normal values of which it is half, rounded up
CHUNKS, ALL_CHUNKS = 64, 512  # of an array; of an answer of many arrays, each of which has at least one
LEAST_CHUNK = 256  # values: fewer do not give a stable RMS
LEAST_FINITE, SAMPLE_SIZE = 0.01, 1 << 18  # the least finite part of an answer; how many values to estimate it from
# values compared at once: in float64 2 MiB, which fit in a core's cache, or 32 MiB, which fit in a GPU's
BLOCK = {"cpu": 1 << 18, "cuda": 1 << 22}


def compare(
    out: Tree,
    reference: Tree,
    base: Tree | None = None,
    precision: str = "",
    custom: Custom = None,
    scale_answer: Tree = None,
) -> Finding | None:
    """What is wrong with `out`; None if nothing. `base`, the baseline's answer, sets kind, dtype and accepted error.

    `usual`: another answer; its size is the scale of errors if the expected answer may be only rounding.
    """
    values, expected = dict(leaves(out)), dict(leaves(reference))
    model = dict.fromkeys(expected) if base is None else dict(leaves(base))
    if not values or values.keys() != expected.keys() or values.keys() != model.keys():
        return Finding(Cause.WRONG_COUNT, {"count": len(values), "expected": len(expected)})
    scales, chunks = dict(leaves(scale_answer)), max(1, min(CHUNKS, ALL_CHUNKS // len(values)))
    for path, value in values.items():
        if reason := _compare_leaf(value, expected[path], model[path], precision, custom, scales.get(path), chunks):
            return reason.with_facts(path=path) if path else reason
    return None


def blind_spot(reference: Tree, base: Tree, other: Tree, precision: str = "", custom: Custom = None) -> Finding | None:
    """Which wrong answers would pass: NaN, zeros, or `other`, the baseline's answer to other inputs; None if none."""
    model, stale = dict(leaves(base)), dict(leaves(other))
    expected = {path: value for path, value in leaves(reference) if as_tensor(value).numel()}
    for path, value in expected.items():
        array, suffix = as_tensor(value), f" as {path}" if path else ""
        sample = array.reshape(-1)[:: 1 + array.numel() // SAMPLE_SIZE]
        if array.is_floating_point() and int(sample.double().isfinite().sum()) < LEAST_FINITE * sample.numel():
            return Finding(Cause.EXPECTS_NAN, {"of": suffix})
    for what, wrong in (("of zeros", lambda path: _zeros(model[path])), ("to other inputs", lambda path: stale[path])):
        problems = (_compare_leaf(wrong(path), expected[path], model[path], precision, custom) for path in expected)
        if expected and not any(problems):
            return Finding(Cause.PASSES_WRONG, {"what": what})
    return None


def _zeros(x: Any) -> Any:
    return torch.zeros_like(x) if isinstance(x, torch.Tensor) else x ^ x if x.dtype.kind == "b" else x * 0


def compare_forms(out: Tree, base: Tree) -> Finding | None:
    """What is wrong with the kinds, types and shapes of `out`; None if nothing. Its values may differ."""
    values, model = dict(leaves(out)), dict(leaves(base))
    if values.keys() != model.keys():
        return Finding(Cause.WRONG_COUNT, {"count": len(values), "expected": len(model)})
    return next(filter(None, (_compare_form(values[path], model[path], model[path]) for path in values)), None)


def _compare_leaf(
    value: Any,
    expected: Any,
    model: Any,
    precision: str,
    custom: Custom,
    scale_answer: Any = None,
    chunks: int = CHUNKS,
) -> Finding | None:
    if (problem := _compare_form(value, expected, model)) or as_tensor(value).numel() == 0:
        return problem
    out, reference = as_tensor(value).reshape(-1), as_tensor(expected).reshape(-1)
    base = as_tensor(model).reshape(-1) if model is not None and scale_answer is None else None
    least = 0.0 if scale_answer is None else float(as_tensor(scale_answer).double().square().mean()) ** 0.5
    return _compare_values(out, reference, base, Tolerance.for_dtype(out.dtype, precision, custom), chunks, least)


def _compare_form(value: Any, expected: Any, model: Any) -> Finding | None:
    if not is_array(value) or not is_plain(value):
        kind = f"{type(value).__module__}.{type(value).__qualname__} {getattr(value, 'dtype', '')}".strip()
        return Finding(Cause.NOT_PLAIN, {"kind": kind.removeprefix("builtins.")})
    if model is not None and type(value) is not type(model):
        kind, model_kind = (f"{cls.__module__}.{cls.__qualname__}" for cls in (type(value), type(model)))
        return Finding(Cause.OTHER_KIND, {"kind": kind, "expected": model_kind})
    out, reference = as_tensor(value), as_tensor(expected)
    if model is not None and out.device != as_tensor(model).device:
        return Finding(Cause.OTHER_DEVICE, {"device": str(out.device), "expected": str(as_tensor(model).device)})
    if out.shape != reference.shape:
        return Finding(Cause.WRONG_SHAPE, {"shape": list(out.shape), "expected": list(reference.shape)})
    if model is not None and out.dtype != as_tensor(model).dtype:
        return Finding(Cause.OTHER_DTYPE, {"dtype": str(out.dtype), "expected": str(as_tensor(model).dtype)})
    if model is None and out.is_floating_point() != reference.is_floating_point():
        return Finding(Cause.WRONG_DTYPE, {"dtype": str(out.dtype), "expected": str(reference.dtype)})
    return None


def _compare_values(
    out: torch.Tensor,
    reference: torch.Tensor,
    base: torch.Tensor | None,
    tolerance: Tolerance,
    chunks: int,
    least: float,
) -> Finding | None:
    """Compare flat tensors of one shape in chunks. `least`: the least RMS that errors are measured by."""
    if not tolerance.precision:
        wrong = int((out.to(reference.device) != reference.to(out.dtype)).sum())
        return Finding(Cause.WRONG_INTEGERS, {"wrong": wrong, "of": out.numel()}) if wrong else None
    step = min(BLOCK[out.device.type], max(LEAST_CHUNK, -(-out.numel() // chunks)))
    compared, models = [], []
    for start in range(0, out.numel(), step):
        part, largest = slice(start, start + step), torch.finfo(out.dtype).max
        ref, values = reference[part].to(out.device).double(), [x[part].double() for x in (out, base) if x is not None]
        if not (bool(values[0].isfinite().all()) and float(ref.abs().max()) <= largest):
            ref = torch.where(ref.abs() > largest, ref.sign() * math.inf, ref)  # what the dtype cannot hold
            if not _same_special(values[0], ref):
                return Finding(Cause.WRONG_SPECIAL, {"index": start, "of": out.numel()})
            is_finite = ref.isfinite()
            ref, *values = (torch.where(is_finite, x, 0.0) for x in (ref, *values))
        errors, size = [(x - ref).abs_() for x in values], ref.abs()
        compared.append(_chunk(errors[0], size, out.dtype))
        excess = torch.sub(errors[0], size, alpha=tolerance.rtol)
        if float(excess.max()) > tolerance.atol * max(compared[-1].scale, least):
            at = int(excess.argmax())
            facts = {"index": start + at, "of": out.numel(), "got": float(values[0][at]), "expected": float(ref[at])}
            return Finding(Cause.WRONG_ELEMENT, facts | ({"narrow": True} if tolerance.is_narrow else {}))
        models += [_chunk(error, size, out.dtype) for error in errors[1:]]
    return _compare_chunks(compared, models, tolerance) if models else None


class Chunk(NamedTuple):
    """A stretch of an answer: number of values, their RMS, their RMS error, and how many are off by half."""

    numel: int
    scale: float
    error: float
    wrong: int


def _chunk(error: torch.Tensor, size: torch.Tensor, dtype: torch.dtype) -> Chunk:
    wrong = 0
    if float(torch.sub(error, size, alpha=WRONG).max()) > 0:  # rarely true
        wrong = int(((error > WRONG * size) & (size > torch.finfo(dtype).tiny)).sum())
    scale, rms = (math.sqrt(float(torch.dot(x, x)) / x.numel()) for x in (size, error))
    return Chunk(size.numel(), scale, rms, wrong)


def _compare_chunks(chunks: list[Chunk], base: list[Chunk], tolerance: Tolerance) -> Finding | None:
    """Whether the errors are those of this precision in every chunk: None if they are."""
    counts, scales, errors, _ = zip(*base, strict=True)
    scale, base_error = (math.sqrt(np.average(np.square(part), weights=counts)) for part in (scales, errors))
    total = sum(counts)
    wrong, base_wrong = (sum(chunk.wrong for chunk in part) / total for part in (chunks, base))
    if wrong > max(MOST_WRONG, SMALL_VALUES * tolerance.floor) + 10 * base_wrong:
        return Finding(Cause.WRONG_SHARE, {"share": wrong, "of": total, "baseline": base_wrong})
    for i, (chunk, model) in enumerate(zip(chunks, base, strict=True)):
        accepted = max(tolerance.times * max(model.error, base_error), tolerance.floor * max(chunk.scale, scale))
        if chunk.numel >= min(LEAST_CHUNK, total) and chunk.error > accepted:
            unit = max(chunk.scale, scale) or 1.0
            facts = {"error": chunk.error / unit, "chunk": i + 1, "chunks": len(chunks), "accepted": accepted / unit}
            return Finding(Cause.WRONG_RMS, {**facts, "precision": tolerance.precision, "of": total})
    return None


def _same_special(out: torch.Tensor, ref: torch.Tensor) -> bool:
    infinite = out.isinf() | ref.isinf()
    return bool((out.isnan() == ref.isnan()).all()) and bool((out[infinite] == ref[infinite]).all())
