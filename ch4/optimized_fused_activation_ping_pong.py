"""Multiply two matrices and apply an activation, in Gluon: one group of warps multiplies while the other one activates.

Problem: in `optimized_fused_activation_persistent.py` all warps end a tile together. While they activate and store it,
no warp multiplies: a GELU of 128 x 256 sums takes 5120 cycles of 65,000.
Idea: the kernel of `optimized_matmul_gluon.py` with a tile for each group (128 x 128), not one for both. The groups
take turns: who has issued the last product of a tile lets the other one begin, and then activates and stores.

    group 0    multiply 0    activate 0    multiply 2    activate 2
    group 1                  multiply 1    activate 1    multiply 3    ...

Cost: it runs on capability 9.0 only. A tile of 128 x 128 asks L2 for 1.33 times as many bytes for each sum as one of
128 x 256. Four warps must keep all tensor cores busy alone.
Predict: a step of 128 x 128 x 64 takes 512 cycles, 64 of them make a tile. A group's activation is hidden if it is
shorter than the other one's products. How many of the four activations are?
"""

import torch
import triton
from activations import activate
from hopper import barrier, barriers, blocks, fence_async_shared
from matrices import operand
from tile_order import swizzle
from tma_layout import aligned, close, padded
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

VERSUS = "persistent"
REQUIRES = {"capability": (9, 0), "exact": True}
BLOCK_M, BLOCK_N, BLOCK_K = gl.constexpr(128), gl.constexpr(128), gl.constexpr(64)  # of each group
GROUP_M = gl.constexpr(8)  # tiles of rows that run side by side
STAGES = gl.constexpr(5)  # of 32 KiB; with 64 KiB of c 224 of 227 KiB


def inputs(m=4096, n=4096, k=4096, activation="leaky_relu", dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device), "activation": activation}


@gluon.jit
def load(a_desc, b_desc, a_smem, b_smem, bars, num_pid_m, num_pid_n, num_k):
    full, empty, _ = bars
    step = 0
    for pid in range(gl.program_id(0), num_pid_m * num_pid_n, gl.num_programs(0)):
        pid_m, pid_n = swizzle(pid, num_pid_m, num_pid_n, GROUP_M)
        for k in range(num_k):
            stage, phase = step % STAGES, step // STAGES & 1
            mbarrier.wait(empty.index(stage), phase ^ 1)  # what was in it has been read
            bar = full.index(stage)
            mbarrier.expect(bar, (BLOCK_M + BLOCK_N) * BLOCK_K * 2)  # bytes, also of zeros beyond the edges
            tma.async_copy_global_to_shared(a_desc, [pid_m * BLOCK_M, k * BLOCK_K], bar, a_smem.index(stage))
            tma.async_copy_global_to_shared(b_desc, [k * BLOCK_K, pid_n * BLOCK_N], bar, b_smem.index(stage))
            step += 1


@gluon.jit
def compute(
    c_desc, a_smem, b_smem, c_smem, bars, num_pid_m, num_pid_n, num_k, ACTIVATION: gl.constexpr, GROUP: gl.constexpr
):  # fmt: skip
    full, empty, turn = bars
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    programs = gl.num_programs(0)
    step, tiles = GROUP * num_k, 0  # every second tile is this group's
    for pid in range(gl.program_id(0) + GROUP * programs, num_pid_m * num_pid_n, 2 * programs):
        pid_m, pid_n = swizzle(pid, num_pid_m, num_pid_n, GROUP_M)
        acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
        mbarrier.wait(turn.index(GROUP), (tiles & 1) ^ (1 - GROUP))  # group 0 begins
        for k in range(num_k):
            stage, phase = step % STAGES, step // STAGES & 1
            mbarrier.wait(full.index(stage), phase)
            acc = warpgroup_mma(a_smem.index(stage), b_smem.index(stage), acc, is_async=True)
            acc = warpgroup_mma_wait(1, [acc])  # the product of the step before is complete
            barrier()  # all four warps have read its stage
            mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1, pred=k > 0)
            step += 1
        mbarrier.arrive(turn.index(1 - GROUP), count=1)  # all products are issued: the other group's turn
        acc = warpgroup_mma_wait(0, [acc])
        tma.store_wait(0)
        barrier()  # the tile before has left c
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1)
        c = c_smem.index(GROUP)
        c.store(activate(acc, ACTIVATION).to(c_desc.dtype))
        fence_async_shared()
        barrier()
        tma.async_copy_shared_to_global(c_desc, [pid_m * BLOCK_M, pid_n * BLOCK_N], c)
        step, tiles = step + num_k, tiles + 1  # the other group's steps
    tma.store_wait(0)


@gluon.jit
def matmul_kernel(a_desc, b_desc, c_desc, num_pid_m, num_pid_n, num_k, ACTIVATION: gl.constexpr):
    a_smem = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BLOCK_M, BLOCK_K], a_desc.layout)
    b_smem = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_K, BLOCK_N], b_desc.layout)
    c_smem = gl.allocate_shared_memory(c_desc.dtype, [2, BLOCK_M, BLOCK_N], c_desc.layout)
    bars = barriers(STAGES), barriers(STAGES), barriers(2)
    fence_async_shared()
    gl.warp_specialize(
        [
            (compute, (c_desc, a_smem, b_smem, c_smem, bars, num_pid_m, num_pid_n, num_k, ACTIVATION, 0)),
            (compute, (c_desc, a_smem, b_smem, c_smem, bars, num_pid_m, num_pid_n, num_k, ACTIVATION, 1)),
            (load, (a_desc, b_desc, a_smem, b_smem, bars, num_pid_m, num_pid_n, num_k)),
        ],
        [4, 1], [232, 24],  # warps and registers of all partitions but the first
    )  # fmt: skip


def setup(a, b, activation):
    return {"programs": torch.cuda.get_device_properties(a.device).multi_processor_count}


def run(a, b, activation, programs):
    (M, K), N = a.shape, b.shape[1]
    c = padded(a, M, N)
    descriptors = blocks(aligned(a), 128, 64), blocks(aligned(b), 64, 128), blocks(c, 128, 128)
    tiles = triton.cdiv(M, 128), triton.cdiv(N, 128)
    grid = (min(programs, tiles[0] * tiles[1]),)
    matmul_kernel[grid](*descriptors, *tiles, triton.cdiv(K, 64), activation, num_warps=4)
    return close(c)
