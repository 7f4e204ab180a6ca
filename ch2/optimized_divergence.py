"""Evaluate one of two series by the parity of the index: all lanes of a warp take the same branch.

Problem: in `baseline_divergence.py` each warp executes both branches, with half of its lanes idle in each.

Idea: a block still takes 256 neighbouring elements. Its first 4 warps take those with an even index, its last 4 warps
the others. The lanes of a warp agree on the branch, and the warp skips the other one:

    a warp of the first four    exp exp exp exp
    a warp of the last four     sin sin sin sin

Cost: the lanes of a warp read every other word.

Predict: how many sectors of 32 bytes does a load of a warp touch now, and how many in the baseline?
"""

import math

import cupy
import numpy

DEVICE = "cuda"
TERMS, THREADS = 16, 256  # threads: of a block

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
    int half_block = blockDim.x / 2;  // the lanes of a warp agree
    int i = blockIdx.x * blockDim.x + 2 * (threadIdx.x % half_block) + threadIdx.x / half_block;
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


def run(x):
    y = cupy.empty_like(x)
    series((-(-x.size // THREADS),), (THREADS,), (x, y, numpy.int32(x.size)))
    return y
