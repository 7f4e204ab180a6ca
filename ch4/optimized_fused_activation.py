"""Multiply two matrices and apply an activation in one kernel: sums are activated in registers, and written once.

y = activation(a @ b), in 16 bits. The kernel of `optimized_matmul_pipelined.py` with one call more: between the last
product and the store, each thread applies the activation to its 128 sums, in float32.

    one kernel    reads a and b, writes 32 MiB      101 MB for 137 GFLOP at 4096^3, not 168

What is written was rounded once, after the activation, and not twice. An SM's one program does nothing else meanwhile:
2 instructions for each sum of a leaky ReLU, 13 of a SiLU, 20 of a GELU.

Predict before you measure: the library's product is better tuned than this one. By how much may it be faster for the
fusion still to win, at 4096^3 and at 8192^3?
"""

import torch
import triton
import triton.language as tl
from activations import activate
from compiled import compiled
from operands import operand, product_cost
from torch.nn import functional

REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 4


def inputs(m=4096, n=4096, k=4096, activation="leaky_relu", dtype="float16", transposed="", step=1, device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, step, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, step, device), "activation": activation}


def library(a, b, activation):
    return getattr(functional, activation)(a @ b)


def yardstick_product(a, b, activation):
    return a @ b


def library_compiled(a, b, activation):
    return compiled(library, a, b.shape, b.stride(), activation)(a, b, activation)


def library_autotuned(a, b, activation):
    mode = "max-autotune-no-cudagraphs"
    return compiled(library, a, b.shape, b.stride(), activation, mode=mode)(a, b, activation)


def cost(a, b, activation):
    return product_cost(a, b)


@triton.jit
def place(pid, down, across, GROUP_M: tl.constexpr):
    first = pid // (GROUP_M * across) * GROUP_M
    height = min(down - first, GROUP_M)  # the last group's may be lower
    within = pid % (GROUP_M * across)
    return first + within % height, within // height


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_down, a_across, b_down, b_across, ACTIVATION: tl.constexpr
):  # fmt: skip
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
    tl.store(c_ptr + row.to(tl.int64) * n + column, activate(total, ACTIVATION), mask=(row < m) & (column < n))


def setup(a, b, activation):
    if a.is_cpu:
        return {"stages": STAGES}
    shared = torch.cuda.get_device_properties(a.device).shared_memory_per_block_optin
    a_stage = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value * a.element_size()
    return {"stages": min(STAGES, shared // a_stage)}


def run(a, b, activation, stages):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, BLOCK_M.value) * triton.cdiv(n, BLOCK_N.value),)
    strides = *a.stride(), *b.stride()
    matmul_kernel[grid](a, b, c, m, n, k, *strides, activation, num_warps=WARPS, num_stages=stages)
    return c
