"""Evaluate one of two series by the parity of the index: half the lanes of every warp wait for the other half.

Problem: elements with an even index need the series of exp, the others that of sin. The lanes of a warp share each
instruction. Neighbouring lanes disagree on the branch, so a warp executes both:

    even lanes    exp exp exp exp  -   -   -   -
    odd lanes      -   -   -   -  sin sin sin sin

Cost: 16 multiply-adds at each of 16 points, 256 a branch, 512 a warp. An SM issues 4 a cycle: 1,017,000 cycles for the
33,554,432 / 32 warps, 0.51 ms at 1.98 GHz. The memory takes 0.06 ms at 4.8 TB/s (both by the datasheet of an H200).

Predict: in `optimized_divergence.py` a warp executes one branch. Is it 2 times faster, or less, and why?
"""

import math

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/tail": {"n": 100_003},  # many blocks, the last one not full
    "default": {"n": 33_554_432},
}
POINTS, STEP, TERMS, THREADS = 16, 0.0625, 16, 256  # threads: of a block

series = cupy.RawKernel(
    r"""
__device__ float exponential(float x) {  // 1 + x / 1! + x^2 / 2! ...
    constexpr float c[] = {EXP};
    float y = c[16];
    for (int k = 15; k >= 0; --k) y = y * x + c[k];
    return y;
}
__device__ float sine(float x) {  // x * (1 - x^2 / 3! + x^4 / 5! ...)
    constexpr float c[] = {SIN};
    float y = c[16], square = x * x;
    for (int k = 15; k >= 0; --k) y = y * square + c[k];
    return y * x;
}

extern "C" __global__ void series(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // neighbours disagree
    if (i >= n) return;
    float value = x[i], sum = 0;
    if (i % 2 == 0)
        for (int point = 0; point < 16; ++point) sum += exponential(value + point * 0.0625f);
    else
        for (int point = 0; point < 16; ++point) sum += sine(value + point * 0.0625f);
    y[i] = sum;
}
""".replace("EXP", ", ".join(f"{1 / math.factorial(k):.9e}f" for k in range(TERMS + 1))).replace(
        "SIN", ", ".join(f"{(-1) ** k / math.factorial(2 * k + 1):.9e}f" for k in range(TERMS + 1))
    ),
    "series",
)


def inputs(n=33_554_432, device="cuda"):
    return {"x": cupy.random.uniform(-1, 1, n, dtype=cupy.float32)}


def reference(x):
    y = cupy.zeros_like(x)
    for point in range(POINTS):
        y[0::2] += cupy.exp(x[0::2] + point * STEP)
        y[1::2] += cupy.sin(x[1::2] + point * STEP)
    return y


def cost(x):
    return {"dram_bytes": 2 * x.nbytes, "fp32_flops": 2 * POINTS * TERMS * x.size}


def run(x):
    y = cupy.empty_like(x)
    series((-(-x.size // THREADS),), (THREADS,), (x, y, numpy.int32(x.size)))
    return y
