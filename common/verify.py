"""Do two halves compute the same thing, honestly? Outputs against an oracle in float64, and against each other.

Two tests, both needed. Every element: |out - oracle| <= atol + rtol * |oracle|, atol scaled by the output's own RMS,
because sums cancel. Every chunk: its RMS error is at most 10 x the baseline's (floored at a few eps), so that neither
lower precision nor a wrong tail hides behind a tolerance. NaN and inf must stand where the oracle has them.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from common.arrays import Tree, as_tensor, is_array, leaves

EPS = {"fp64": 2.0**-52, "fp32": 2.0**-23, "tf32": 2.0**-10, "fp16": 2.0**-10, "bf16": 2.0**-7, "fp8": 2.0**-3}
# Elementwise: wide enough for a long sum's rounding, far too narrow for zeros. rtol = atol / RMS.
TOLERANCE = {"fp64": 1e-10, "fp32": 2e-4, "tf32": 5e-2, "fp16": 2e-2, "bf16": 1e-1, "fp8": 0.3}
DTYPES = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
TIMES_BASELINE = 10  # how far above the baseline's error another order of operations may lie
FLOOR_EPS = {"fp64": 32, "fp32": 32}  # RMS error that any honest order of operations may have, in eps ...
FLOOR_EPS_SHORT = 4  # ... and in the short types, which round once, at the end
CHUNKS = 64
LEAST_CHUNK = 256  # values: fewer do not pool to a steady RMS
BLOCK = 1 << 22  # values compared at once, to bound the float64 copies


@dataclass(frozen=True)
class Tolerance:
    """What an arm is judged by: a precision's table row, loosened where its file says why."""

    precision: str
    rtol: float
    atol: float

    @classmethod
    def of(cls, dtype: torch.dtype, precision: str = "", custom: tuple[float, float] | None = None) -> "Tolerance":
        precision = precision or DTYPES.get(dtype, "")
        if not precision:  # integers and booleans: equal or wrong
            return cls("", 0.0, 0.0)
        rtol, atol = custom or (TOLERANCE[precision], TOLERANCE[precision])
        return cls(precision, rtol, atol)


def compare(
    out: Tree, oracle: Tree, base: Tree | None = None, precision: str = "", custom: tuple[float, float] | None = None
) -> str:
    """What is wrong with `out`; empty if nothing. `base`, the baseline's, sets kind, dtype and accepted error."""
    mine, truth = dict(leaves(out)), dict(leaves(oracle))
    model = dict(leaves(base)) if base is not None else truth
    if not mine or mine.keys() != truth.keys() or mine.keys() != model.keys():
        return f"returns {len(mine)} value(s), expected {len(truth)}"
    for path, value in mine.items():
        reason = _compare_leaf(value, truth[path], model[path] if base is not None else None, precision, custom)
        if reason:
            return f"{path}: {reason}" if path else reason
    return ""


def _compare_leaf(value: Any, truth: Any, model: Any, precision: str, custom: tuple[float, float] | None) -> str:
    if not is_array(value):
        kind = f"{type(value).__name__} {getattr(value, 'dtype', '')}".strip()
        return f"returns {kind}, not a tensor or an array of numbers"
    if model is not None and type(value) is not type(model):
        mine, theirs = (f"{kind.__module__}.{kind.__qualname__}" for kind in (type(value), type(model)))
        return f"returns {mine}, the baseline {theirs}"
    out, oracle = as_tensor(value), as_tensor(truth)
    if out.shape != oracle.shape:
        return f"shape {list(out.shape)}, expected {list(oracle.shape)}"
    if model is not None and out.dtype != as_tensor(model).dtype:
        return f"dtype {out.dtype}, the baseline's is {as_tensor(model).dtype}"
    if model is None and out.is_floating_point() != oracle.is_floating_point():
        return f"dtype {out.dtype}, expected {oracle.dtype}"
    if out.numel() == 0:
        return ""
    base = as_tensor(model).reshape(-1) if model is not None else None
    return _compare_values(out.reshape(-1), oracle.reshape(-1), base, Tolerance.of(out.dtype, precision, custom))


def _compare_values(out: torch.Tensor, oracle: torch.Tensor, base: torch.Tensor | None, tolerance: Tolerance) -> str:
    """Flat tensors of one shape; walks them in chunks."""
    if not tolerance.precision:
        wrong = int((out.to(oracle.device) != oracle.to(out.dtype)).sum())
        return f"{wrong} of {out.numel()} values differ" if wrong else ""
    size = min(BLOCK, max(LEAST_CHUNK, -(-out.numel() // CHUNKS)))
    square = base_error = 0.0
    errors: list[tuple[float, int]] = []
    for start in range(0, out.numel(), size):
        part = slice(start, start + size)
        ref, mine = _finite(oracle[part].to(out.device), out.dtype), out[part].double()
        if not _same_special(mine, ref):
            return f"NaN or inf differ from the oracle's near element {start} of {out.numel()}"
        scale = math.sqrt(float(_zeroed(ref).square().mean()))
        error = _zeroed(mine - ref).abs()
        excess = error - tolerance.rtol * _zeroed(ref).abs() - tolerance.atol * scale
        if float(excess.max()) > 0:
            at = int(excess.argmax())
            return f"element {start + at} of {out.numel()} is {float(mine[at]):.6g}, expected {float(ref[at]):.6g}"
        errors.append((float(error.square().mean()), ref.numel()))
        square += float(_zeroed(ref).square().sum())
        if base is not None:
            base_error += float(_zeroed(base[part].double() - ref).square().sum())
    scale = math.sqrt(square / out.numel())
    floor = FLOOR_EPS.get(tolerance.precision, FLOOR_EPS_SHORT) * EPS[tolerance.precision]
    accepted = max(TIMES_BASELINE * math.sqrt(base_error / out.numel()), floor * scale)
    worst, chunk = max((math.sqrt(mean), i) for i, (mean, n) in enumerate(errors) if n >= min(LEAST_CHUNK, out.numel()))
    if base is not None and worst > accepted:
        where = f"in chunk {chunk + 1} of {len(errors)}, accepted {accepted / scale:.2g}"
        return f"relative RMS error {worst / scale:.2g} {where}: not {tolerance.precision}, or partly wrong"
    return ""


def _finite(oracle: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The oracle in float64, infinite where the output's dtype could not hold it."""
    double = oracle.double()
    return torch.where(double.abs() > torch.finfo(dtype).max, double.sign() * math.inf, double)


def _same_special(mine: torch.Tensor, ref: torch.Tensor) -> bool:
    infinite = mine.isinf() | ref.isinf()
    return bool((mine.isnan() == ref.isnan()).all()) and bool((mine[infinite] == ref[infinite]).all())


def _zeroed(x: torch.Tensor) -> torch.Tensor:
    """NaN and inf, already compared, as zeros."""
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
