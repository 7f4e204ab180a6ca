"""Multiply two matrices in 16 bits with tensor descriptors: one instruction copies a block, 132 programs do every tile.

c = a @ b, summed in float32. On capability 9.0 and up a descriptor (address, shape, strides, block) lets the tensor
memory accelerator (TMA) fetch a block of a matrix by its coordinates, zeros beyond the edges:

    cp.async    16 bytes a thread: 12 addresses, masks and copies for each of 256 threads and each step of 48 KiB
    TMA         2 instructions of one thread a step, no address in any register

As many programs as SMs walk over all tiles. c leaves by TMA as well, in two parts of 32 KiB beside the 192 KiB of the
stages, and is still in flight when the next tile begins. 512 tiles at 4096^3 are 3.9 rounds of 132 programs.

A descriptor wants rows side by side that begin at multiples of 16 bytes. A transposed matrix is read as it lies and
its block is turned by the tensor cores; any other (an odd number of columns, gaps) is copied first: 2 passes of it.

Predict before you measure: the loads of `optimized_matmul_pipelined.py` were hidden already. What is left to win? And
at 4093^3, where rows begin at odd addresses and cp.async cannot copy 2 bytes: what do three copies save?
"""

import torch
import triton
import triton.language as tl
from operands import describable, operand, padded, product_cost
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = "pipelined"
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 4
FLATTEN = tl.constexpr(True)  # the loops over tiles and steps are one: the next tile's blocks are asked for in time


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
    return c.contiguous()
