"""Weighted geometric product in one kernel: gate, products and normalization of a row in registers, 3 u.

Problem: in `optimized_sgp_written_out.py` every operation reads and writes memory: 86 u in 3D.
Idea: a program reads a row of x and y, all blades and all features of it, and keeps it in registers until the answer is
written. What the algebra says is known when the kernel is compiled: TERMS has the D products of two blades that give
blade 0, then those that give blade 1, and so on. The loops over it become D^2 multiply-adds without a branch. The sums
of squares of a row are ready before the row leaves, so the normalization needs no second pass. Both gates are one
factor for each feature, phi(x[0]) * phi(y[0]), applied to the answer.
Cost: one program has
                                                                                     3D        2D
    in memory           read x, read y, write the answer: the least there is          3 u       3 u
    in registers        x, y and the answer of 512 features: 3 * D * 512 * 4         48 KiB    24 KiB    of an SM's 256
    in L1 or L2         20 or 10 weights for each of them, read for each row         40 KiB    20 KiB

A row is a power of two of lanes wide. One that is wider than the registers is left to `tuned`.
Predict: `yardstick_add` reads two tensors, writes one and computes next to nothing: the same 3 u, in the same rounds.
How many percent of the measured memory limit does this kernel reach? And how many times as long does torch.compile
take, which is given the lines of `optimized_sgp_written_out.py`?
"""

# ruff: noqa: RUF005 (Triton knows `tuple + tuple`, and no star in a tuple)

import torch
import triton
import triton.language as tl
from clifford.reference import EPSILON, algebra_of
from multivectors import drawn

VERSUS = "written_out"
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    w = w.mT.contiguous().mT  # path by path in memory, as a layer keeps it
    return {"x": x, "y": y, "w": w, "normalized": normalized}


@triton.jit
def load_planes(ptr, stride, mask, COUNT: tl.constexpr):
    """A tuple of tiles that lie `stride` elements apart: a row's blades, or the paths' weights."""
    tiles = ()
    for i in tl.static_range(COUNT):
        tiles = tiles + (tl.load(ptr + i * stride, mask=mask, other=0.0).to(tl.float32),)
    return tiles


@triton.jit
def phi(t):
    return 0.5 + 0.5 * tl.erf(t * 0.7071067811865476)


@triton.jit
def products(x, y, w, TERMS: tl.constexpr, D: tl.constexpr):
    out = ()
    for k in tl.static_range(D):
        acc = tl.zeros_like(x[0])
        for n in tl.static_range(k * D, k * D + D):  # (i, j, k, sign, path): e_i e_j = sign e_k
            acc += TERMS[n][3] * (w[TERMS[n][4]] * x[TERMS[n][0]] * y[TERMS[n][1]])
        out = out + (acc,)
    return out


@triton.jit
def sgp_kernel(
    x_ptr, y_ptr, w_ptr, out_ptr, stride_d, features, epsilon, TERMS: tl.constexpr, GRADES: tl.constexpr,
    PATHS: tl.constexpr, NORMALIZED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    D: tl.constexpr = len(GRADES)
    cols = tl.arange(0, BLOCK)
    mask = cols < features
    offsets = tl.program_id(0).to(tl.int64) * features + cols  # 64 bits: a tensor may have more than 2^31 elements
    x = load_planes(x_ptr + offsets, tl.cast(stride_d, tl.int64), mask, D)
    y = load_planes(y_ptr + offsets, tl.cast(stride_d, tl.int64), mask, D)
    out = products(x, y, load_planes(w_ptr + cols, features, mask, PATHS), TERMS, D)
    gate = phi(x[0]) * phi(y[0])
    for grade in tl.static_range(GRADES[-1] + 1):
        square = tl.zeros((BLOCK,), tl.float32)
        for k in tl.static_range(D):
            if GRADES[k] == grade:
                square += out[k] * gate * out[k] * gate
        scale = gate * tl.rsqrt(tl.sum(square, 0) / features + epsilon) if NORMALIZED else gate
        for k in tl.static_range(D):
            if GRADES[k] == grade:
                tl.store(out_ptr + offsets + k * tl.cast(stride_d, tl.int64), out[k] * scale, mask=mask)


def run(x, y, w, normalized):
    x, y, w = x.contiguous(), y.contiguous(), w.mT.contiguous()
    out, (_, batch, features), algebra = torch.empty_like(x), x.shape, algebra_of(x)
    block = triton.next_power_of_2(features)
    sgp_kernel[(batch,)](
        x, y, w, out, batch * features, features, EPSILON, TERMS=algebra.terms, GRADES=algebra.grades, PATHS=len(w),
        NORMALIZED=normalized, BLOCK=block, num_warps=min(max(block // 128, 1), 16),
    )  # fmt: skip
    return out
