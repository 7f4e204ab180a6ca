"""Multiply two matrices and apply an activation by tensor descriptors: sums are activated while blocks arrive.

Problem: in `optimized_fused_activation.py` an SM loads nothing while it activates and stores a tile.
Idea: the kernel of `optimized_matmul_tma.py`, with 3 stages. 132 programs take all tiles in turn, and the blocks of the
next tile are in flight before the sums of this one are complete.

    a tile     64 steps of 0.56 us at 4096^3 (H200, datasheet): some 65,000 cycles
    its end    128 sums a thread are activated, rounded and written to shared memory, from which TMA stores them

Cost: the activation's instructions remain: for each of 8 warps 128 * 2 (leaky ReLU) to 128 * 20 (GELU). An SM issues
four instructions in a cycle.
Predict: by how many percent do the instructions of a leaky ReLU make a tile longer, and those of a GELU?
"""

import torch
import triton
import triton.language as tl
from activations import activate
from matrices import operand
from tma_layout import close, describable, padded
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = ""
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 3
FLATTEN = tl.constexpr(True)  # one loop over tiles and steps: the next tile's blocks are requested early


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
def matmul_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    A_IS_TRANSPOSED: tl.constexpr, B_IS_TRANSPOSED: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), flatten=FLATTEN):
        pid_m, pid_n = swizzle(tl.cast(pid, tl.int32), num_pid_m, num_pid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([k, pid_m * BLOCK_M]).T if A_IS_TRANSPOSED else a_desc.load([pid_m * BLOCK_M, k])
            b = b_desc.load([pid_n * BLOCK_N, k]).T if B_IS_TRANSPOSED else b_desc.load([k, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        acc0, acc1 = tl.split(acc.reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1))
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], activate(acc0, ACTIVATION).to(c_desc.dtype))
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N + BLOCK_N // 2], activate(acc1, ACTIVATION).to(c_desc.dtype))


def setup(a, b, activation):
    if a.is_cpu:
        return {"programs": 3, "stages": STAGES}
    gpu = torch.cuda.get_device_properties(a.device)
    a_stage = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value * a.element_size()
    c_part = BLOCK_M.value * BLOCK_N.value // 2 * a.element_size() + 1024  # and barriers
    stages = min(STAGES, max((gpu.shared_memory_per_block_optin - c_part) // a_stage, 1))
    return {"programs": gpu.multi_processor_count, "stages": stages}


def run(a, b, activation, programs, stages):
    (M, K), N = a.shape, b.shape[1]
    c = padded(a, M, N)
    if not (a.numel() and b.numel()):
        return c.zero_().contiguous()  # all of the activations map 0 to 0
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
        *described, M, N, K, a_is_transposed, b_is_transposed, activation, num_warps=WARPS, num_stages=stages
    )
    return close(c)
