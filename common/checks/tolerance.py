"""Tolerances: how much an answer of each precision may differ from the reference answer."""

from dataclasses import dataclass

import torch

EPS = {"fp64": 2.0**-52, "fp32": 2.0**-23, "tf32": 2.0**-10, "fp16": 2.0**-10, "bf16": 2.0**-7, "fp8": 2.0**-3}
EPS["int8"] = 2.0**-6  # 127 steps for the largest value, of which most values are a third
# By element: wide enough for the rounding of a long sum, too narrow for zeros. rtol = atol / RMS.
TOLERANCE = {"fp64": 1e-10, "fp32": 2e-4, "tf32": 5e-2, "fp16": 2e-2, "bf16": 1e-1, "fp8": 0.3, "int8": 0.1}
Custom = tuple[float, float] | None  # a file's own (rtol, atol)
DTYPES = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
# An RMS error of more than TIMES x the baseline's has another cause than the order of operations. An error of FLOOR eps
# is always accepted: sums in fp32 accumulate rounding; the short types round a wider sum once, at the end (0.2 eps); a
# version that declares a lower precision rounds every operand.
TIMES_BASELINE, FLOOR_EPS = {"fp64": 10, "fp32": 10}, {"fp64": 32.0, "fp32": 32.0}
TIMES_BASELINE_SHORT, FLOOR_EPS_SHORT, FLOOR_EPS_DECLARED = 3, 0.5, 1.0


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of a candidate: the row of its precision, or the one that its file declares with a reason."""

    precision: str
    rtol: float
    atol: float  # in units of the expected answer's RMS
    times: float = 0.0  # RMS error, in units of the baseline's own
    floor: float = 0.0  # relative RMS error that is always accepted
    is_narrow: bool = False  # the file declares less than its precision's own

    @classmethod
    def for_dtype(cls, dtype: torch.dtype, declared: str = "", custom: Custom = None) -> "Tolerance":
        native = DTYPES.get(dtype, "")
        if not dtype.is_floating_point or not (precision := declared or native):  # integers and booleans must be equal
            return cls("", 0.0, 0.0)
        rtol, atol = custom or (TOLERANCE[precision], TOLERANCE[precision])
        least = FLOOR_EPS_SHORT if precision == native else FLOOR_EPS_DECLARED
        times = TIMES_BASELINE.get(precision, TIMES_BASELINE_SHORT)
        floor = FLOOR_EPS.get(precision, least) * EPS[precision]
        return cls(precision, rtol, atol, times, floor, min(rtol, atol) < TOLERANCE[precision])
