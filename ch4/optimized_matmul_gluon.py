"""Multiply two matrices in 16 bits, in Gluon for capability 9.0: the program itself says which warps load or multiply.

Problem: in `optimized_matmul_specialized.py` the compiler decides. Four warps load, and by its machine code each step
waits for its own product.
Idea: Gluon is Triton with these decisions in the program. A program, one an SM, walks over tiles of 128 x 256 in parts:

    load        1 warp           asks TMA for blocks of a and b as stages become free, also across tiles
    multiply    2 x 4 warps      each multiplies 64 rows of a tile, frees stages, and stores its sums

They meet at barriers in shared memory (`mbarrier`): a stage is full, a stage is free. It is free when both groups have
read it, so a group that is 3 stages ahead waits for the other one.
Products are asynchronous (`wgmma`): a group frees a step's stage when it has issued the next step's product, and the
step's own is complete.
Cost: it runs on capability 9.0 only. Three stages of 48 KiB and a tile of c are 208 KiB of 227. Layouts, barriers and
registers are in the program: a mistake there is a wrong answer, or a program that waits for ever.
Predict: is it faster than `optimized_matmul_specialized.py`, which has the same parts and the same stages?
"""

import torch
import triton
from hopper import barrier, barriers, blocks, fence_async_shared
from matrices import operand
from tile_order import swizzle
from tma_layout import aligned, close, padded
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

VERSUS = "specialized"
REQUIRES = {"capability": (9, 0), "exact": True}
ROWS, BLOCK_N, BLOCK_K = gl.constexpr(64), gl.constexpr(256), gl.constexpr(64)  # ROWS: of each of two groups
GROUP_M = gl.constexpr(8)  # tiles of rows that run side by side
STAGES = gl.constexpr(3)


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device)}


@gluon.jit
def load(a_desc, b_desc, a_smem, b_smem, full, empty, num_pid_m, num_pid_n, num_k):
    step = 0
    for pid in range(gl.program_id(0), num_pid_m * num_pid_n, gl.num_programs(0)):
        pid_m, pid_n = swizzle(pid, num_pid_m, num_pid_n, GROUP_M)
        for k in range(num_k):
            # A barrier counts its phases 0, 1, 0, ...; a wait for 1 passes on a new one, so every stage begins free
            stage, phase = step % STAGES, step // STAGES & 1
            mbarrier.wait(empty.index(stage), phase ^ 1)  # both groups have read what was in it
            bar = full.index(stage)
            mbarrier.expect(bar, (2 * ROWS + BLOCK_N) * BLOCK_K * 2)  # bytes, also of zeros beyond the edges
            for group in gl.static_range(2):
                start_m = (2 * pid_m + group) * ROWS
                tma.async_copy_global_to_shared(a_desc, [start_m, k * BLOCK_K], bar, a_smem.index(2 * stage + group))
            tma.async_copy_global_to_shared(b_desc, [k * BLOCK_K, pid_n * BLOCK_N], bar, b_smem.index(stage))
            step += 1


@gluon.jit
def multiply(c_desc, a_smem, b_smem, c_smem, full, empty, num_pid_m, num_pid_n, num_k, GROUP: gl.constexpr):
    # Where sums of wgmma (version 3.0) lie: 4 warps one below another, of 16 rows, BLOCK_N columns; k in steps of 16
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    step = 0
    for pid in range(gl.program_id(0), num_pid_m * num_pid_n, gl.num_programs(0)):
        pid_m, pid_n = swizzle(pid, num_pid_m, num_pid_n, GROUP_M)
        acc = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
        for k in range(num_k):
            stage, phase = step % STAGES, step // STAGES & 1
            mbarrier.wait(full.index(stage), phase)
            acc = warpgroup_mma(a_smem.index(2 * stage + GROUP), b_smem.index(stage), acc, is_async=True)
            acc = warpgroup_mma_wait(1, [acc])  # the product of the step before is complete
            barrier()  # all four warps have read its stage
            mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1, pred=k > 0)
            step += 1
        acc = warpgroup_mma_wait(0, [acc])
        tma.store_wait(0)
        barrier()  # the tile before has left c
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1)
        c = c_smem.index(GROUP)
        c.store(acc.to(c_desc.dtype))
        fence_async_shared()  # TMA sees what threads wrote before it
        barrier()
        tma.async_copy_shared_to_global(c_desc, [(2 * pid_m + GROUP) * ROWS, pid_n * BLOCK_N], c)
    tma.store_wait(0)


@gluon.jit
def matmul_kernel(a_desc, b_desc, c_desc, num_pid_m, num_pid_n, num_k):
    a_smem = gl.allocate_shared_memory(a_desc.dtype, [2 * STAGES, ROWS, BLOCK_K], a_desc.layout)
    b_smem = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_K, BLOCK_N], b_desc.layout)
    c_smem = gl.allocate_shared_memory(c_desc.dtype, [2, ROWS, BLOCK_N], c_desc.layout)
    full, empty = barriers(STAGES), barriers(STAGES, 2)  # of empty: one arrival a group
    fence_async_shared()
    gl.warp_specialize(
        [
            (multiply, (c_desc, a_smem, b_smem, c_smem, full, empty, num_pid_m, num_pid_n, num_k, 0)),
            (multiply, (c_desc, a_smem, b_smem, c_smem, full, empty, num_pid_m, num_pid_n, num_k, 1)),
            (load, (a_desc, b_desc, a_smem, b_smem, full, empty, num_pid_m, num_pid_n, num_k)),
        ],
        [4, 1], [232, 24],  # warps and registers of all partitions but the first
    )  # fmt: skip


def setup(a, b):
    return {"programs": torch.cuda.get_device_properties(a.device).multi_processor_count}


def run(a, b, programs):
    (M, K), N = a.shape, b.shape[1]
    c = padded(a, M, N)
    descriptors = blocks(aligned(a), 64, 64), blocks(aligned(b), 64, 256), blocks(c, 64, 256)
    tiles = triton.cdiv(M, 128), triton.cdiv(N, 256)
    grid = (min(programs, tiles[0] * tiles[1]),)
    matmul_kernel[grid](*descriptors, *tiles, triton.cdiv(K, 64), num_warps=4)
    return close(c)
