"""Multiply two matrices in 16 bits with tensor descriptors: a unit of the SM copies blocks, 132 programs do every tile.

Problem: in `optimized_matmul_pipelined.py` 256 threads issue the copies of a step, 16 bytes each: 12 addresses, masks
and copies a thread. At the end of a tile, the SM loads nothing for the next one.
Idea: a descriptor (address, shape, strides, block) lets the tensor memory accelerator (TMA, from capability 9.0 on)
fetch a block by its coordinates, with zeros beyond the edges: a few instructions of one thread a step. As many programs
as SMs walk over all tiles, and the blocks of the next tile are in flight before this one is stored. c is stored by TMA
too, in two parts of 32 KiB.
Cost: rows must begin at multiples of 16 bytes. A transposed matrix is read as it lies. Any other matrix (an odd number
of columns, gaps between neighbours) is copied first: one read and one write. At 4093^3 `pipelined` cannot use cp.async
either, which moves 4 bytes at least, and it loads 2 bytes at a time through registers.
Predict: how many times as fast as `pipelined` is it at 4096^3, where the loads are hidden already, and at 4093^3, where
it makes three copies of 33.5 MB?
"""

import torch
import triton
import triton.language as tl
from matrices import operand
from tma_layout import close, describable, padded
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = "pipelined"
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 4
FLATTEN = tl.constexpr(True)  # one loop over tiles and steps: the next tile's blocks are requested early


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", step=1, device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, step, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, step, device)}


@triton.jit
def swizzle(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)  # the last group's may be lower
    pid_in_group = pid % (GROUP_M * num_pid_n)
    return first_pid_m + pid_in_group % group_size_m, pid_in_group // group_size_m


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, M, N, K, A_IS_TRANSPOSED: tl.constexpr, B_IS_TRANSPOSED: tl.constexpr):
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), flatten=FLATTEN):
        pid_m, pid_n = swizzle(tl.cast(pid, tl.int32), num_pid_m, num_pid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([k, pid_m * BLOCK_M]).T if A_IS_TRANSPOSED else a_desc.load([pid_m * BLOCK_M, k])
            b = b_desc.load([pid_n * BLOCK_N, k]).T if B_IS_TRANSPOSED else b_desc.load([k, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        acc0, acc1 = tl.split(acc.reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1))
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc0.to(c_desc.dtype))
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N + BLOCK_N // 2], acc1.to(c_desc.dtype))


def setup(a, b):
    if a.is_cpu:
        return {"programs": 3, "stages": STAGES}
    gpu = torch.cuda.get_device_properties(a.device)
    a_stage = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value * a.element_size()
    c_part = BLOCK_M.value * BLOCK_N.value // 2 * a.element_size() + 1024  # and barriers
    stages = min(STAGES, max((gpu.shared_memory_per_block_optin - c_part) // a_stage, 1))
    return {"programs": gpu.multi_processor_count, "stages": stages}


def run(a, b, programs, stages):
    (M, K), N = a.shape, b.shape[1]
    c = padded(a, M, N)
    if not (a.numel() and b.numel()):
        return c.zero_().contiguous()
    (a, a_is_transposed), (b, b_is_transposed) = describable(a), describable(b)
    a_blocks = [BLOCK_K.value, BLOCK_M.value] if a_is_transposed else [BLOCK_M.value, BLOCK_K.value]
    b_blocks = [BLOCK_N.value, BLOCK_K.value] if b_is_transposed else [BLOCK_K.value, BLOCK_N.value]
    described = (
        TensorDescriptor.from_tensor(a, a_blocks),
        TensorDescriptor.from_tensor(b, b_blocks),
        TensorDescriptor.from_tensor(c, [BLOCK_M.value, BLOCK_N.value // 2]),
    )
    tiles = triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value)
    matmul_kernel[(min(programs, tiles),)](
        *described, M, N, K, a_is_transposed, b_is_transposed, num_warps=WARPS, num_stages=stages
    )
    return close(c)
