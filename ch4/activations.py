"""Four activations, by torch's names, as a matrix product's kernel applies them to its sums in float32."""

import triton
import triton.language as tl


@triton.jit
def upper_tail(x):
    """Probability that a standard normal variable is larger than x, within 1.3e-5: Abramowitz and Stegun, 7.1.25.

    Rounding to 16 bits is off by up to 2^-11 of the answer: 40 times as much, unless the answer is small. At x = -3
    GELU is -0.004, and this error is up to 1 % of it; torch's erf is more exact there. A polynomial in x, without
    exponential and reciprocal, is cheaper and as exact near zero. Far below zero its error would be most of the answer:
    `--check` refuses it.
    """
    t = 1 / (1 + 0.33267253 * tl.abs(x))
    beyond = t * (0.1740121 + t * (-0.0479399 + t * 0.3739278)) * tl.exp2(-0.72134752 * x * x)  # exp(-x^2 / 2)
    return tl.where(x > 0, beyond, 1 - beyond)


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "leaky_relu":
        y = tl.maximum(x, 0.01 * x)  # NaN if x is: both are
    elif ACTIVATION == "relu":
        y = tl.where(x < 0, 0.0, x)  # not tl.maximum, which drops NaN
    elif ACTIVATION == "gelu":
        y = x * upper_tail(-x)  # = x / 2 * (1 + erf(x / sqrt(2)))
    elif ACTIVATION == "silu":
        y = x / (1 + tl.exp(-x))
    else:
        tl.static_assert(False, "no such activation")
    return y
