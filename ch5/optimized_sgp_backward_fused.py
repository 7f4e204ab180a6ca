"""Weighted geometric product, forward and backward, in one pass each way: 8 u, and nothing kept between them.

Problem: `optimized_sgp_backward_written_out.py` keeps every factor, and reads and writes memory in each of 834 kernels.
Idea: save only x and y. Backward computes the product again, in registers: that moves no bytes, while keeping the
product would write 1 u and read 1 u. Let g be the gradient of the sums of products. A term, blade i times blade j is
sign times blade k, gives

    dx[i] += sign w[path] y[j] g[k]      dy[j] += sign w[path] x[i] g[k]      dw[path] += sign x[i] y[j] g[k]

The gates are one factor c = phi(x[0]) phi(y[0]). With X, Y the gradients without it, one sum serves both, S = sum over
i of x[i] X[i]:

    dx[i] = c X[i],   dx[0] = c X[0] + density(x[0]) phi(y[0]) S,   dy likewise, with Y and the same S

Cost: the least that each way can move, 8 u:

    forward     read x and y, write the answer                    3 u     `optimized_sgp_fused.py`
    backward    read x, y and the gradient, write dx and dy       5 u

The weights' gradient is a sum over all rows. A program has 16 rows, one after the other, and adds up their shares in
registers, without atomics; torch adds the programs' sums: 256 * 20 * 512 * 4 bytes, 10 MiB (2D: 5 MiB). So two runs
give equal bits. A feature needs registers for x, y, the gradient, 20 weights and 20 sums, forward for fewer.
Predict: `yardstick_add` moves 8 u in four kernels. Does this version come as near to the measured memory limit as the
forward kernel alone, `optimized_sgp_fused.py`?
"""

# ruff: noqa: RUF005 (Triton knows `tuple + tuple`, and no star in a tuple)

import torch
import triton
import triton.language as tl
from clifford.reference import EPSILON, algebra_of
from multivectors import drawn
from optimized_sgp_fused import load_planes, phi, products
from optimized_sgp_fused import run as forward

VERSUS = "written_out"
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum
ROWS = 16  # of a program
SPILLS = "x, y, the gradient, 20 weights and 20 sums of each feature: a few on some GPUs, in 3D"


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    w = w.mT.contiguous().mT  # path by path in memory, as a layer keeps it
    return {"x": x, "y": y, "w": w, "gradient": torch.randn_like(x), "normalized": normalized}


@triton.jit
def density(t):
    return tl.exp(-0.5 * t * t) * 0.3989422804014327


@triton.jit
def before_normalization(g, out, features, epsilon, GRADES: tl.constexpr):
    """The gradient of the sums `out` from that of these normalized: each grade has two sums over the row."""
    before = ()
    for k in tl.static_range(len(GRADES)):
        square, dot = tl.zeros_like(g[0]), tl.zeros_like(g[0])
        for m in tl.static_range(len(GRADES)):
            if GRADES[m] == GRADES[k]:
                square += out[m] * out[m]
                dot += g[m] * out[m]
        scale = tl.rsqrt(tl.sum(square, 0) / features + epsilon)
        before = before + (g[k] * scale - out[k] * (tl.sum(dot, 0) / features * scale * scale * scale),)
    return before


@triton.jit
def path_sums(dw, x, y, g, gate, TERMS: tl.constexpr, PATHS: tl.constexpr):
    sums = ()
    for path in tl.static_range(PATHS):
        acc = tl.zeros_like(gate)
        for n in tl.static_range(len(TERMS)):
            if TERMS[n][4] == path:
                acc += TERMS[n][3] * (x[TERMS[n][0]] * y[TERMS[n][1]] * g[TERMS[n][2]])
        sums = sums + (dw[path] + gate * acc,)
    return sums


@triton.jit
def store_gradient(ptr, stride_d, mask, X, gate, of_gate, D: tl.constexpr):
    tl.store(ptr, X[0] * gate + of_gate, mask=mask)
    for i in tl.static_range(1, D):
        tl.store(ptr + i * stride_d, X[i] * gate, mask=mask)


@triton.jit
def backward_kernel(
    x_ptr, y_ptr, w_ptr, g_ptr, dx_ptr, dy_ptr, dw_ptr, stride_d, batch, features, epsilon,
    TERMS: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, GRADES: tl.constexpr, PATHS: tl.constexpr,
    NORMALIZED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    D: tl.constexpr = len(GRADES)
    first, cols = tl.program_id(0) * ROWS, tl.arange(0, BLOCK)
    mask, stride_d = cols < features, tl.cast(stride_d, tl.int64)  # 64 bits: a tensor may have more than 2^31 elements
    w = load_planes(w_ptr + cols, features, mask, PATHS)
    dw = ()
    for _ in tl.static_range(PATHS):
        dw = dw + (tl.zeros((BLOCK,), tl.float32),)
    for row in range(first, tl.minimum(first + ROWS, batch)):
        offsets = tl.cast(row, tl.int64) * features + cols
        x = load_planes(x_ptr + offsets, stride_d, mask, D)
        y = load_planes(y_ptr + offsets, stride_d, mask, D)
        g = load_planes(g_ptr + offsets, stride_d, mask, D)
        gate = phi(x[0]) * phi(y[0])
        if NORMALIZED:
            out = ()
            sums = products(x, y, w, TERMS, D)
            for k in tl.static_range(D):
                out = out + (sums[k] * gate,)
            g = before_normalization(g, out, features, epsilon, GRADES)
        X, Y = products(y, g, w, LEFT, D), products(x, g, w, RIGHT, D)
        S = tl.zeros_like(gate)
        for i in tl.static_range(D):
            S += x[i] * X[i]
        store_gradient(dx_ptr + offsets, stride_d, mask, X, gate, density(x[0]) * phi(y[0]) * S, D)
        store_gradient(dy_ptr + offsets, stride_d, mask, Y, gate, density(y[0]) * phi(x[0]) * S, D)
        dw = path_sums(dw, x, y, g, gate, TERMS, PATHS)
    for path in tl.static_range(PATHS):
        tl.store(dw_ptr + (tl.program_id(0) * PATHS + path) * tl.cast(features, tl.int64) + cols, dw[path], mask=mask)


def run(x, y, w, gradient, normalized):
    x, y, w, gradient = (t.contiguous() for t in (x, y, w.mT, gradient))
    _out = forward(x, y, w.mT, normalized)  # of it, a loss is made; the gradients do not need it
    (_, batch, features), algebra = x.shape, algebra_of(x)
    # The same terms in the order of what they are added to: (left factor, right factor, sum, sign, path)
    left = tuple(sorted(((j, k, i, sign, path) for i, j, k, sign, path in algebra.terms), key=lambda term: term[2]))
    right = tuple(sorted(((i, k, j, sign, path) for i, j, k, sign, path in algebra.terms), key=lambda term: term[2]))
    block, programs = triton.next_power_of_2(features), triton.cdiv(batch, ROWS)
    dx, dy, dw = torch.empty_like(x), torch.empty_like(y), torch.empty(programs, *w.shape, device=x.device)
    backward_kernel[(programs,)](
        x, y, w, gradient, dx, dy, dw, batch * features, batch, features, EPSILON,
        TERMS=algebra.terms, LEFT=left, RIGHT=right, GRADES=algebra.grades, PATHS=len(w), NORMALIZED=normalized,
        ROWS=ROWS, BLOCK=block, num_warps=min(max(block // 32, 1), 32),
    )  # fmt: skip
    return dx, dy, dw.sum(0).to(w.dtype).mT
