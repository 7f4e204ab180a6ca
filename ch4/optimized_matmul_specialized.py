"""Multiply two matrices in 16 bits with warp specialization: four warps copy ahead, two groups of four multiply.

Problem: in `optimized_matmul_persistent.py` each warp waits for blocks, issues products and asks for the next blocks,
with three barriers of all 256 threads a step.
Idea: the compiler splits the loop into two roles. They meet through barriers in shared memory, a pair for each stage.

    producer     4 warps, 40 registers a thread     waits for a free stage, asks the TMA for a and b
    consumers    2 x 4 warps, 232 registers each    wait for a full stage, multiply 64 x 256, free the stage

While the consumers store a tile, the producer fills stages for the next one: the loops need no `flatten` for that.
Cost: 3 stages instead of 4, because c's whole tile is in shared memory: 3 * 48 + 64 = 208 KiB of 227. The kernel makes
the descriptors in memory that Triton requests from an allocator: the compiler splits a's block among the consumers,
which it cannot do with a descriptor made outside.
Predict: a barrier costs time only if the tensor cores have no product in flight then. Is it faster than
`optimized_matmul_persistent.py`, or slower?
"""

import torch
import triton
import triton.language as tl
from matrices import operand
from shared_memory import stages_that_fit
from tile_order import swizzle
from tma_layout import aligned, close, padded

VERSUS = "persistent"
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 4, 3  # warps of each group


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device)}


@triton.jit(do_not_specialize=["K"])  # with a constant k of 1 there is no loop, and the compiler fails
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [stride_b, 1], [BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BLOCK_M, BLOCK_N])
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), warp_specialize=True):
        pid_m, pid_n = swizzle(tl.cast(pid, tl.int32), num_pid_m, num_pid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([pid_m * BLOCK_M, k])
            b = b_desc.load([k, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


def scratch(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


def setup(a, b):
    triton.set_allocator(scratch)  # 3 descriptors of 128 bytes a program
    gpu = None if a.is_cpu else torch.cuda.get_device_properties(a.device)
    warps = 8 if gpu and gpu.major > 9 else WARPS  # later capabilities: two groups write the sums
    stage, c_tile = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value, BLOCK_M.value * BLOCK_N.value
    stages = stages_that_fit(a, STAGES, stage, c_tile)
    return {"programs": gpu.multi_processor_count if gpu else 3, "warps": warps, "stages": stages}


def run(a, b, programs, warps, stages):
    (M, K), N = a.shape, b.shape[1]
    a, b, c = aligned(a), aligned(b), padded(a, M, N)
    tiles = triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value)
    strides = a.stride(0), b.stride(0), c.stride(0)
    matmul_kernel[(min(programs, tiles),)](a, b, c, M, N, K, *strides, num_warps=warps, num_stages=stages)
    return close(c)
