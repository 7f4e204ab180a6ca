"""Multiply two matrices in 16 bits, tiles dealt out in groups of 8 rows: neighbours in time share what they read in L2.

c = a @ b, summed in float32. 132 programs run at once, one an SM, and walk along k together: what several of them read
crosses the memory bus once. At 8192^3 there are 64 x 32 tiles of 128 x 256. Dealt out row by row, 132 of them are 4
rows of tiles with all columns of b; in groups of 8 rows of tiles, column by column, they are nearer to a square:

    row by row     4.1 * 128 rows of a + 8192 columns of b        143 MB a wave    2.2 GB in 15.5 waves
    groups of 8    8 * 128 rows of a + 16.5 * 256 columns of b     86 MB a wave    1.3 GB
    the least      a, b and c once                                                 0.4 GB

Programs along m share b, those along n share a. What all SMs read from L2 is the same in any order: 12.9 GB. (Bytes
of a and b; c is written once, in any order.)

Predict before you measure: at 4096^3, b is 32 MiB. What is there to gain if L2 keeps all of it? And at 8192^3, do 0.9
GB less matter, at 4 TB/s, beside 1.1 TFLOP?
"""

import torch
import triton
import triton.language as tl
from operands import operand, product_cost

VERSUS = ""
REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 1


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", step=1, device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, step, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, step, device)}


def reference(a, b):
    return a @ b


def library(a, b):
    return a @ b


def cost(a, b):
    return product_cost(a, b)


@triton.jit
def place(pid, down, across, GROUP_M: tl.constexpr):
    first = pid // (GROUP_M * across) * GROUP_M
    height = min(down - first, GROUP_M)  # the last group's may be lower
    within = pid % (GROUP_M * across)
    return first + within % height, within // height


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, a_down, a_across, b_down, b_across):
    i, j = place(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    row = i * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = j * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a_down, a_across = tl.cast(a_down, tl.int64), tl.cast(a_across, tl.int64)  # times a stride 32 bits may overflow
    b_down, b_across = tl.cast(b_down, tl.int64), tl.cast(b_across, tl.int64)
    a_at = a_ptr + row % m * a_down + inner[None, :] * a_across  # beyond the last row: any, its sums are not stored
    b_at = b_ptr + inner[:, None] * b_down + column % n * b_across
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_at, mask=inner[None, :] < k - start, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < k - start, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BLOCK_K * a_across
        b_at += BLOCK_K * b_down
    tl.store(c_ptr + row.to(tl.int64) * n + column, total, mask=(row < m) & (column < n))


def run(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, BLOCK_M.value) * triton.cdiv(n, BLOCK_N.value),)
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), num_warps=WARPS, num_stages=STAGES)
    return c
