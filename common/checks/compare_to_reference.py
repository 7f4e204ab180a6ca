"""Whether an answer equals the float64 reference except for rounding. (The baseline's answer: compare_to_baseline.)

Two tests are needed. Every element: |out - reference| <= atol + rtol * |reference|, where atol is scaled by the
reference's RMS in its chunk, because sums cancel. Every chunk: its RMS error is at most a few times the baseline's
(tolerance.py; at least a few eps), so that a tolerance hides neither lower precision nor a wrong tail. NaN and inf must
be at the reference's places.
"""

import math
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import torch

from common.checks.arrays import BLOCK, Tree, as_tensor, batches, has_arithmetic, is_array, is_plain, join, leaves
from common.checks.tolerance import Custom, Tolerance
from common.record.outcome import Cause, Finding

WRONG, MOST_WRONG = 0.5, 0.01  # off by half of their own size; the share of such values that rounding may cause
SMALL_VALUES = 2  # times a relative RMS error: the share of normal values of which it is half, rounded up
CHUNKS, ALL_CHUNKS = 64, 512  # of an array; of an answer of many arrays, each of which has at least one
LEAST_CHUNK = 256  # values: fewer do not give a stable RMS
LEAST_FINITE, SAMPLE_SIZE = 0.01, 1 << 18  # the least finite part of an answer; how many values to estimate it from


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
    rows = [(path, value, expected[path], model[path], scales.get(path)) for path, value in values.items()]
    return _compare_leaves(rows, precision, custom, chunks)


def blind_spot(reference: Tree, base: Tree, other: Tree, precision: str = "", custom: Custom = None) -> Finding | None:
    """Which wrong answers would pass: NaN, zeros, or `other`, the baseline's answer to other inputs; None if none."""
    model, stale = dict(leaves(base)), dict(leaves(other))
    expected = {path: value for path, value in leaves(reference) if as_tensor(value).numel()}
    floats = ((path, _flat(value)) for path, value in expected.items() if as_tensor(value).is_floating_point())
    samples = ((path, array[:: 1 + array.numel() // SAMPLE_SIZE].double()) for path, array in floats)
    for batch in batches(samples, itemgetter(1)):
        shares = torch.stack([sample.isfinite().double().mean() for _, sample in batch]).tolist()
        for (path, _), share in zip(batch, shares, strict=True):
            if share < LEAST_FINITE:
                return Finding(Cause.EXPECTS_NAN, {"of": f" as {path}" if path else ""})
    for what, wrong in (("of zeros", lambda path: _zeros(model[path])), ("to other inputs", lambda path: stale[path])):
        rows = ([(path, wrong(path), expected[path], model[path], None)] for path in expected)
        problems = (_compare_leaves(row, precision, custom, CHUNKS) for row in rows)
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


def _compare_leaves(
    rows: Sequence[tuple[str, Any, Any, Any, Any]], precision: str, custom: Custom, chunks: int
) -> Finding | None:
    """What is wrong with the first wrong one of `rows`: path, value, expected value, the baseline's, one for scale."""
    last, compared = None, list[_Leaf]()
    for path, value, expected, model, scale in rows:
        if last := _compare_form(value, expected, model):
            last = last.with_facts(path=path) if path else last
            break
        if (out := _flat(value)).numel():
            least = 0.0 if scale is None else float(_flat(scale).double().square().mean()) ** 0.5
            base = _flat(model) if model is not None and scale is None else None
            tolerance = Tolerance.for_dtype(out.dtype, precision, custom)
            compared.append(_Leaf(path, tolerance, out, _flat(expected), base, least))
    return _compare_values(compared, chunks) or last


def _flat(x: Any) -> torch.Tensor:
    return as_tensor(x).reshape(-1)


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


class _Leaf(NamedTuple):
    """A flat array of an answer, the reference's, the baseline's, and the least RMS that errors are measured by."""

    path: str
    tolerance: Tolerance
    out: torch.Tensor
    reference: torch.Tensor
    base: torch.Tensor | None
    least: float

    def parts(self, chunks: int) -> Iterator["_Part"]:
        """Its chunks; integers are one."""
        count = self.out.numel()
        step = min(BLOCK[self.out.device.type], max(LEAST_CHUNK, -(-count // chunks)))
        for start in range(0, count, step if self.tolerance.precision else count):
            part = slice(start, start + step if self.tolerance.precision else count)
            base = None if self.base is None else self.base[part]
            yield _Part(self, start, self.out[part], self.reference[part], base)


class _Part(NamedTuple):
    leaf: _Leaf
    start: int
    out: torch.Tensor
    reference: torch.Tensor
    base: torch.Tensor | None

    @property
    def is_last(self) -> bool:
        return self.start + self.out.numel() == self.leaf.out.numel()


def _compare_values(leaves: list[_Leaf], chunks: int) -> Finding | None:
    """Compare arrays in chunks, many at once where they are small. The first wrong one counts."""
    measured, parts = list[list[Chunk]](), (part for leaf in leaves for part in leaf.parts(chunks))
    for batch in batches(parts, attrgetter("out")):
        for part, usual in zip(batch, _measure(batch), strict=True):
            found, problem = usual or _examine(part), None
            if isinstance(found, Finding):
                problem = found
            else:
                measured.append(found)
                if part.is_last:
                    problem, measured = _compare_chunks(measured, part.leaf.tolerance), []
            if problem:
                return problem.with_facts(path=part.leaf.path) if part.leaf.path else problem
    return None


def _measure(batch: list[_Part]) -> list[list["Chunk"]]:
    """Each part's chunk (and the baseline's), measured at once; empty where one is special, off by half, or wrong."""
    tolerance, sizes = batch[0].leaf.tolerance, [part.out.numel() for part in batch]
    device, forms = batch[0].out.device, {(part.reference.dtype, part.base is None) for part in batch}
    if len(batch) == 1 or not tolerance.precision or not has_arithmetic(batch[0].out) or len(forms) > 1:
        return [[] for _ in batch]
    columns = [column for column in zip(*(part[2:] for part in batch), strict=True) if column[0] is not None]
    out, reference, *base = (join([x.to(device) for x in column]).double() for column in columns)
    values = [out, *base]
    size, errors = reference.abs(), [(x - reference).abs_() for x in values]
    excess = torch.sub(errors[0], size, alpha=tolerance.rtol)
    halves = [torch.sub(error, size, alpha=WRONG) for error in errors]
    norms = [torch._foreach_norm(x.split(sizes)) for x in (size, *errors)]
    maxima = [torch._foreach_max(x.split(sizes)) for x in (size, excess, *halves)]
    rows = torch.stack([x for row in (*norms, *maxima) for x in row]).view(-1, len(batch)).tolist()
    largest, found = torch.finfo(batch[0].out.dtype).max, list[list[Chunk]]()
    for part, count, numbers in zip(batch, sizes, zip(*rows, strict=True), strict=True):
        scale, *rms = (norm / math.sqrt(count) for norm in numbers[: len(norms)])
        top, worst, *off = numbers[len(norms) :]
        allowed = tolerance.atol * max(scale, part.leaf.least)
        is_usual = top <= largest and worst <= allowed and all(half <= 0 for half in off)  # NaN is not
        found.append([Chunk(count, scale, error, 0) for error in rms] if is_usual else [])
    return found


def _examine(part: _Part) -> Finding | list["Chunk"]:
    """What is wrong with a part; if nothing, its chunk, and the baseline's."""
    tolerance, start, of = part.leaf.tolerance, part.start, part.leaf.out.numel()
    if not tolerance.precision:
        wrong = int((part.out.to(part.reference.device) != part.reference.to(part.out.dtype)).sum())
        return Finding(Cause.WRONG_INTEGERS, {"wrong": wrong, "of": of}) if wrong else []
    dtype, largest = part.out.dtype, torch.finfo(part.out.dtype).max
    ref = part.reference.to(part.out.device).double()
    values = [x.double() for x in (part.out, part.base) if x is not None]
    if not (bool(values[0].isfinite().all()) and float(ref.abs().max()) <= largest):
        ref = torch.where(ref.abs() > largest, ref.sign() * math.inf, ref)  # what the dtype cannot hold
        if not _same_special(values[0], ref):
            return Finding(Cause.WRONG_SPECIAL, {"index": start, "of": of})
        is_finite = ref.isfinite()
        ref, *values = (torch.where(is_finite, x, 0.0) for x in (ref, *values))
    errors, size = [(x - ref).abs_() for x in values], ref.abs()
    chunk, *model = [_chunk(error, size, dtype) for error in errors]
    excess = torch.sub(errors[0], size, alpha=tolerance.rtol)
    if float(excess.max()) > tolerance.atol * max(chunk.scale, part.leaf.least):
        at = int(excess.argmax())
        facts = {"index": start + at, "of": of, "got": float(values[0][at]), "expected": float(ref[at])}
        return Finding(Cause.WRONG_ELEMENT, facts | ({"narrow": True} if tolerance.is_narrow else {}))
    return [chunk, *model]


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


def _compare_chunks(measured: list[list[Chunk]], tolerance: Tolerance) -> Finding | None:
    """Whether the errors are those of this precision in every chunk: None if they are. `measured`: with the baseline's.

    Without a baseline nothing is known of its errors.
    """
    if len(measured[0]) < 2:
        return None
    chunks, base = zip(*measured, strict=True)
    counts, scales, errors, _ = zip(*base, strict=True)
    total = sum(counts)
    scale, base_error = (
        math.sqrt(sum(n * x * x for n, x in zip(counts, part, strict=True)) / total) for part in (scales, errors)
    )
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
