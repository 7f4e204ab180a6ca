"""Multiply two matrices in 16 bits, 128 x 256 of the answer a program: each element is fetched 16 or 32 times.

c = a @ b, summed in float32. The same walk along k with larger tiles: what is loaded of a serves 256 columns, what is
loaded of b 128 rows.

    a tile and step    (128 + 256) * 64 * 2 bytes = 48 KiB for 2 * 128 * 256 * 64 FLOP    85 FLOP a byte
    all of 4096^3      4096^3 * (1/128 + 1/256) * 2 bytes = 1.6 GB from the caches, not 8.6

The sums stay in registers: 128 * 256 of 256 threads are 128 for each, half of all that a thread can have, so that one
program fills an SM. 128 rows are also what the widest tensor-core instructions of capability 9.0 want (64 rows of a by
256 columns of b, by four warps), and they read a and b from shared memory.

Predict before you measure: 5.3 times fewer bytes than `baseline_matmul.py`. While a program waits for its loads, which
other warps of the SM compute? And what do 256 x 256 sums cost (`optimized_tile_size.py`)?
"""

import torch
import triton
import triton.language as tl
from operands import operand, product_cost

REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
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
def place(pid, down, across):
    return pid // across, pid % across


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, a_down, a_across, b_down, b_across):
    i, j = place(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N))
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
