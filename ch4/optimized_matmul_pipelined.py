"""Multiply two matrices in 16 bits, 3 blocks of k on their way while one is multiplied: the tensor cores need not wait.

c = a @ b, summed in float32. A loop that loads, waits and multiplies leaves the tensor cores idle for as long as memory
takes to answer, 0.5 to 1 us, while the products of a step take 4.2 MFLOP / 7.5 TFLOP/s an SM = 0.56 us. With stages the
copies of later steps run while this one is multiplied (cp.async: from global to shared memory, past the registers):

    a stage     (128 + 256) * 64 * 2 bytes = 48 KiB of a and b
    4 stages    192 KiB of the 227 KiB that a block may have at capability 9.0; 3 of them are in flight

An SM with less takes as many stages as fit (`setup`): 3 at capability 8.0, 2 at 8.6.

Predict before you measure: how much of a step did `optimized_matmul_grouped.py` wait? Why do 8 warps of one program
not hide it, as many programs a SM do for an element-wise kernel?
"""

import torch
import triton
import triton.language as tl
from operands import operand, product_cost

VERSUS = "grouped"
REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 4


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


def setup(a, b):
    if a.is_cpu:
        return {"stages": STAGES}
    shared = torch.cuda.get_device_properties(a.device).shared_memory_per_block_optin
    a_stage = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value * a.element_size()
    return {"stages": min(STAGES, shared // a_stage)}


def run(a, b, stages):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, BLOCK_M.value) * triton.cdiv(n, BLOCK_N.value),)
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), num_warps=WARPS, num_stages=stages)
    return c
