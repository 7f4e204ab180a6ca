"""Multiply two matrices in 16 bits with tensor descriptors: one thread asks for a block, a unit of the SM copies it.

Problem: in `optimized_matmul_pipelined.py` 256 threads issue the copies of a step, 16 bytes each: 12 addresses, masks
and copies a thread.
Idea: a descriptor (address, shape, strides, block) lets the tensor memory accelerator (TMA, from capability 9.0 on)
fetch a block by its coordinates, with zeros beyond the edges: a few instructions of one thread a step. c is stored by
TMA, too.
Cost: rows must be contiguous and begin at multiples of 16 bytes. Any other matrix (transposed, or with a row stride of
no multiple of 8 elements) is copied first, which `aligned` does: one read, one write. At 4093^3 `pipelined` cannot use
cp.async either, which moves 4 bytes at least, and it loads 2 bytes at a time through registers.
Predict: how many times as fast as `pipelined` is it at 4096^3, where the loads are hidden already, and at 4093^3, where
it makes three copies of 33.5 MB?
"""

import triton
import triton.language as tl
from matrices import operand
from shared_memory import stages_that_fit
from tma_layout import aligned, close, padded
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = "pipelined"
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
WARPS, STAGES = 8, 4


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device)}


@triton.jit
def swizzle(pid, num_pid_m, num_pid_n):
    return pid // num_pid_n, pid % num_pid_n  # row by row: none yet


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, M, N, K):
    pid_m, pid_n = swizzle(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N))
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([pid_m * BLOCK_M, k])
        b = b_desc.load([k, pid_n * BLOCK_N])
        acc = tl.dot(a, b, acc)
    c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


def setup(a, b):
    return {"stages": stages_that_fit(a, STAGES, (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value, 1)}


def run(a, b, stages):
    (M, K), N = a.shape, b.shape[1]
    c = padded(a, M, N)
    descriptors = (
        TensorDescriptor.from_tensor(aligned(a), [BLOCK_M.value, BLOCK_K.value]),
        TensorDescriptor.from_tensor(aligned(b), [BLOCK_K.value, BLOCK_N.value]),
        TensorDescriptor.from_tensor(c, [BLOCK_M.value, BLOCK_N.value]),
    )
    grid = (triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value),)
    matmul_kernel[grid](*descriptors, M, N, K, num_warps=WARPS, num_stages=stages)
    return close(c)
