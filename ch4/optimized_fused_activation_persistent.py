"""Multiply two matrices and apply an activation by tensor descriptors: sums are activated while blocks arrive.

Problem: in `optimized_fused_activation_fused.py` an SM loads nothing while it activates and stores a tile.
Idea: the kernel of `optimized_matmul_persistent.py`, with 3 stages (a fourth would fit, but is not recorded). 132
programs take all tiles in turn, and the blocks of the next tile are in flight before the sums of this one are
complete.

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
from shared_memory import stages_that_fit
from tile_order import swizzle
from tma_layout import aligned, close, padded
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = "fused"
REQUIRES = {"capability": (9, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 3
FLATTEN = tl.constexpr(True)  # one loop over tiles and steps: the next tile's blocks are requested early


def inputs(m=4096, n=4096, k=4096, activation="leaky_relu", dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device), "activation": activation}


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, M, N, K, ACTIVATION: tl.constexpr):
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), flatten=FLATTEN):
        pid_m, pid_n = swizzle(tl.cast(pid, tl.int32), num_pid_m, num_pid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([pid_m * BLOCK_M, k])
            b = b_desc.load([k, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        acc0, acc1 = tl.split(acc.reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1))
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], activate(acc0, ACTIVATION).to(c_desc.dtype))
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N + BLOCK_N // 2], activate(acc1, ACTIVATION).to(c_desc.dtype))


def setup(a, b, activation):
    stage, c_part = (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value, BLOCK_M.value * BLOCK_N.value // 2
    programs = 3 if a.is_cpu else torch.cuda.get_device_properties(a.device).multi_processor_count
    return {"programs": programs, "stages": stages_that_fit(a, STAGES, stage, c_part)}


def run(a, b, activation, programs, stages):
    (M, K), N = a.shape, b.shape[1]
    c = padded(a, M, N)
    descriptors = (
        TensorDescriptor.from_tensor(aligned(a), [BLOCK_M.value, BLOCK_K.value]),
        TensorDescriptor.from_tensor(aligned(b), [BLOCK_K.value, BLOCK_N.value]),
        TensorDescriptor.from_tensor(c, [BLOCK_M.value, BLOCK_N.value // 2]),
    )
    tiles = triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value)
    matmul_kernel[(min(programs, tiles),)](*descriptors, M, N, K, activation, num_warps=WARPS, num_stages=stages)
    return close(c)
