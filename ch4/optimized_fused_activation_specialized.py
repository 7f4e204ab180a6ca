"""Multiply two matrices and apply an activation with warp specialization: a producer copies while consumers activate.

Problem: in `optimized_fused_activation_tma.py` the warps that activate also have to ask for the next blocks.
Idea: the kernel of `optimized_matmul_specialized.py`. The producer, four warps, only asks for blocks, up to 3 steps
ahead, also across tiles. The consumers, two groups of four warps, multiply, activate and store.

    producer     4 warps, 40 registers a thread
    consumers    2 x 4 warps, 232 registers each: 128 sums, and room for an activation

Cost: both groups read the same blocks of b, so one group can be at most 3 stages ahead of the other. Both activate at
nearly the same time, and then no warp multiplies.
Predict: with a GELU at 4096^3, is it faster than `optimized_fused_activation_tma.py`, or slower?
"""

import torch
import triton
import triton.language as tl
from activations import activate
from matrices import operand
from tma_layout import close, describable, padded

VERSUS = "tma"
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 4, 3  # warps of each group


def inputs(m=4096, n=4096, k=4096, activation="leaky_relu", dtype="float16", transposed="", step=1, device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, step, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, step, device), "activation": activation}


@triton.jit
def swizzle(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)  # the last group's may be lower
    pid_in_group = pid % (GROUP_M * num_pid_n)
    return first_pid_m + pid_in_group % group_size_m, pid_in_group // group_size_m


@triton.jit
def describe(ptr, rows, columns, stride, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr, IS_TRANSPOSED: tl.constexpr):
    if IS_TRANSPOSED:
        desc = tl.make_tensor_descriptor(ptr, [columns, rows], [stride, 1], [BLOCK_C, BLOCK_R])
    else:
        desc = tl.make_tensor_descriptor(ptr, [rows, columns], [stride, 1], [BLOCK_R, BLOCK_C])
    return desc


@triton.jit(do_not_specialize=["K"])  # with a constant k of 1 there is no loop, and the compiler fails
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    A_IS_TRANSPOSED: tl.constexpr, B_IS_TRANSPOSED: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    a_desc = describe(a_ptr, M, K, stride_a, BLOCK_M, BLOCK_K, A_IS_TRANSPOSED)
    b_desc = describe(b_ptr, K, N, stride_b, BLOCK_K, BLOCK_N, B_IS_TRANSPOSED)
    c_desc = describe(c_ptr, M, N, stride_c, BLOCK_M, BLOCK_N, False)
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), warp_specialize=True):
        pid_m, pid_n = swizzle(tl.cast(pid, tl.int32), num_pid_m, num_pid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([k, pid_m * BLOCK_M]).T if A_IS_TRANSPOSED else a_desc.load([pid_m * BLOCK_M, k])
            b = b_desc.load([pid_n * BLOCK_N, k]).T if B_IS_TRANSPOSED else b_desc.load([k, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], activate(acc, ACTIVATION).to(c_desc.dtype))


def scratch(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


def setup(a, b, activation):
    triton.set_allocator(scratch)  # 3 descriptors of 128 bytes a program
    if a.is_cpu:
        return {"programs": 3, "warps": WARPS, "stages": STAGES}
    gpu = torch.cuda.get_device_properties(a.device)
    warps = WARPS if gpu.major == 9 else 8  # later capabilities: two groups write the sums
    a_stage = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value * a.element_size()
    c_tile = BLOCK_M.value * BLOCK_N.value * a.element_size() + 1024  # and barriers
    stages = min(STAGES, max((gpu.shared_memory_per_block_optin - c_tile) // a_stage, 1))
    return {"programs": gpu.multi_processor_count, "warps": warps, "stages": stages}


def run(a, b, activation, programs, warps, stages):
    (M, K), N = a.shape, b.shape[1]
    c = padded(a, M, N)
    if not (a.numel() and b.numel()):
        return c.zero_().contiguous()  # all of the activations map 0 to 0
    (a, a_is_transposed), (b, b_is_transposed) = describable(a), describable(b)
    tiles = triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value)
    strides = a.stride(0), b.stride(0), c.stride(0)
    matmul_kernel[(min(programs, tiles),)](
        a, b, c, M, N, K, *strides, a_is_transposed, b_is_transposed, activation, num_warps=warps, num_stages=stages
    )
    return close(c)
