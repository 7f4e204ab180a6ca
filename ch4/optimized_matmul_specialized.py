"""Multiply two matrices in 16 bits, warps of two trades: four copy blocks ahead, two groups of four only multiply.

c = a @ b, summed in float32. In `optimized_matmul_tma.py` every warp waits for blocks, issues products and asks for the
next blocks, with three barriers of all 256 threads a step. Here the compiler cuts the loop in two:

    producer     4 warps, 40 registers a thread     waits for a free stage, asks the TMA for a and b
    consumers    2 x 4 warps, 232 registers each    wait for a full stage, multiply 64 x 256, free the stage

Producer and consumers meet through barriers in shared memory, a pair for each stage; no other barrier is for more than
one group. While consumers store their sums, the producer is filling stages for the next tile: 3 of 48 KiB, which with
a tile of c of 64 KiB make 208 KiB of the 227.

The descriptors are made by the kernel, in memory that Triton asks of an allocator: the compiler halves a's block among
the consumers, which it cannot do to a descriptor made outside.

Predict before you measure: tensor cores work while a warp waits for others, if a product is in flight. How much of a
step of 0.56 us can three barriers cost? Does 3 stages instead of 4 matter?
"""

import torch
import triton
import triton.language as tl
from operands import describable, operand, padded, product_cost

VERSUS = "tma"
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 4, 3  # warps of each group


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
def describe(ptr, rows, columns, down, DOWN: tl.constexpr, ACROSS: tl.constexpr, IS_TRANSPOSED: tl.constexpr):
    if IS_TRANSPOSED:
        described = tl.make_tensor_descriptor(ptr, [columns, rows], [down, 1], [ACROSS, DOWN])
    else:
        described = tl.make_tensor_descriptor(ptr, [rows, columns], [down, 1], [DOWN, ACROSS])
    return described


@triton.jit(do_not_specialize=["k"])  # a k of 1 as a constant leaves no loop, and the compiler fails
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_down, b_down, c_down, A_IS_TRANSPOSED: tl.constexpr, B_IS_TRANSPOSED: tl.constexpr
):  # fmt: skip
    a = describe(a_ptr, m, k, a_down, BLOCK_M, BLOCK_K, A_IS_TRANSPOSED)
    b = describe(b_ptr, k, n, b_down, BLOCK_K, BLOCK_N, B_IS_TRANSPOSED)
    c = describe(c_ptr, m, n, c_down, BLOCK_M, BLOCK_N, False)
    down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for pid in tl.range(tl.program_id(0), down * across, tl.num_programs(0), warp_specialize=True):
        i, j = place(tl.cast(pid, tl.int32), down, across, GROUP_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, k, BLOCK_K):
            a_block = a.load([start, i * BLOCK_M]).T if A_IS_TRANSPOSED else a.load([i * BLOCK_M, start])
            b_block = b.load([j * BLOCK_N, start]).T if B_IS_TRANSPOSED else b.load([start, j * BLOCK_N])
            total = tl.dot(a_block, b_block, total)
        c.store([i * BLOCK_M, j * BLOCK_N], total.to(c.dtype))


def scratch(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


def setup(a, b):
    triton.set_allocator(scratch)  # 3 descriptors of 128 bytes a program
    if a.is_cpu:
        return {"programs": 3, "warps": WARPS, "stages": STAGES}
    gpu = torch.cuda.get_device_properties(a.device)
    warps = WARPS if gpu.major == 9 else 8  # later ones: two groups write what the tensor cores have summed
    a_stage = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value * a.element_size()
    c_tile = BLOCK_M.value * BLOCK_N.value * a.element_size() + 1024  # and barriers
    stages = min(STAGES, max((gpu.shared_memory_per_block_optin - c_tile) // a_stage, 1))
    return {"programs": gpu.multi_processor_count, "warps": warps, "stages": stages}


def run(a, b, programs, warps, stages):
    (m, k), n = a.shape, b.shape[1]
    c = padded(a, m, n)
    if not (a.numel() and b.numel()):
        return c.zero_().contiguous()
    (a, a_is_transposed), (b, b_is_transposed) = describable(a), describable(b)
    tiles = triton.cdiv(m, BLOCK_M.value) * triton.cdiv(n, BLOCK_N.value)
    strides = a.stride(0), b.stride(0), c.stride(0)
    matmul_kernel[(min(programs, tiles),)](
        a, b, c, m, n, k, *strides, a_is_transposed, b_is_transposed, num_warps=warps, num_stages=stages
    )
    return c.contiguous()
