"""Multiply two matrices in 16 bits, in Gluon for capability 9.0, of any shape and alignment: the tile by the shape.

Problem: `optimized_matmul_gluon.py` has one tile. A last wave of few tiles leaves SMs idle, a whole tile of c, 64 KiB,
leaves room for 3 stages, and matrices that TMA cannot read or write as they lie are copied.
Idea: the same two roles, and for each of these cases a way of its own:

    tile        by the shape of c, and by where rows begin (`soonest` in hopper.py). Sums for each line of a step:
                    192 x 256    110    the fewest lines, which counts most where rows begin off lines
                    128 x 256     85    2/3 of its sums: less is wasted beyond the edges and in the last wave
                    192 x 128     77    1/2: less yet, for c whose last wave larger tiles leave nearly empty
                    128 x 64      43    1/6: for a small c, of fewer large tiles than there are SMs
    last wave   if it has few tiles, each of their groups gets a program of its own; its other groups let stages pass
    c           leaves in parts of 64 columns, from two buffers in turn: room for 4 stages of 128 x 256
    transposed  a or b is read as it lies
    odd rows    TMA cannot store rows that begin anywhere: warps store c, 64 bytes of a row at a time. c is not copied

Cost: it multiplies 16 bits, 64 rows and columns at least (else: torch's product).
A step of 128 x 256 asks L2 for 384 lines of 128 bytes; for more if rows begin off lines. Kernels of cuBLAS in clusters
fetch a block once for two SMs (multicast). Triton 3.6 cannot; in 3.7 no SM can tell the other that it has read a block.
Where rows begin off lines, a wide tile is taken though its last wave is emptier: 6144 x 1536 x 3000 has 192 tiles of
192 x 256, two waves that are full to 0.73. Of 192 x 128 three waves would be full to 0.97, but a step asks for 512
lines where the wide tile asks for 640 and computes twice as much.
Predict: 132 programs compute c of 8192^3 in waves of 132 tiles. How many waves do tiles of 128 x 256 take, and how many
tiles of 192 x 128? If a wave takes a time in proportion to its tile, which of them is faster, and by how many percent?
"""

import torch
from hopper import barrier, barriers, blocks, fence_async_shared, parts, planner, store, unit, units
from launches import launch
from matrices import operand
from tma_layout import describable, in_lines
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

VERSUS = "gluon"
REQUIRES = {"capability": (9, 0), "exact": True}
BLOCK_K, ROWS = gl.constexpr(64), gl.constexpr(64)  # a step along k; rows of a tile that a group multiplies
# Rows, columns of a tile -> its rate if rows are in lines, and if not (tried on an H100), STAGES, GROUP_M, REGISTERS
TILES = {(128, 256): (1.0, 1.0, 4, 16, 232), (192, 256): (1.02, 1.14, 3, 8, 160),
         (192, 128): (0.96, 0.84, 4, 8, 152), (128, 64): (0.6, 0.5, 8, 8, 232)}  # fmt: skip
plan = planner(TILES)


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device)}


@gluon.jit
def load(
    descs, smem, bars, tiles, num_k, A_IS_TRANSPOSED: gl.constexpr, B_IS_TRANSPOSED: gl.constexpr,
    GROUP_M: gl.constexpr,
):  # fmt: skip
    a_desc, b_desc = descs
    a_smem, b_smem = smem
    full, empty = bars
    STAGES: gl.constexpr = b_smem.shape[0]
    GROUPS: gl.constexpr = a_smem.shape[0] // STAGES
    BLOCK_N: gl.constexpr = b_smem.shape[1] * b_smem.shape[2] // BLOCK_K
    step = 0
    for pid in range(gl.program_id(0), units(tiles, GROUPS), gl.num_programs(0)):
        pid_m, pid_n, only = unit(pid, tiles, GROUP_M, GROUPS)
        start_m, start_n = pid_m * GROUPS * ROWS, pid_n * BLOCK_N
        for k in range(num_k):
            slot, is_odd, start_k = step % STAGES, (step // STAGES) & 1, k * BLOCK_K
            mbarrier.wait(empty.index(slot), is_odd ^ 1)
            bar = full.index(slot)
            # Bytes, also of zeros beyond the edges
            mbarrier.expect(bar, (GROUPS * ROWS + BLOCK_N) * BLOCK_K * 2, pred=only < 0)
            mbarrier.expect(bar, (ROWS + BLOCK_N) * BLOCK_K * 2, pred=only >= 0)
            for i in gl.static_range(GROUPS):
                place = [start_k, start_m + i * ROWS] if A_IS_TRANSPOSED else [start_m + i * ROWS, start_k]
                a = a_smem.index(slot * GROUPS + i)
                tma.async_copy_global_to_shared(a_desc, place, bar, a, pred=(only < 0) | (only == i))
            place = [start_n, start_k] if B_IS_TRANSPOSED else [start_k, start_n]
            tma.async_copy_global_to_shared(b_desc, place, bar, b_smem.index(slot))
            step += 1


@gluon.jit
def compute(
    out, smem, bars, tiles, num_k, A_IS_TRANSPOSED: gl.constexpr, B_IS_TRANSPOSED: gl.constexpr,
    GROUP_M: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    c_out, M, N = out  # a descriptor, None, None; or a pointer
    a_smem, b_smem, c_smem = smem
    full, empty = bars
    STAGES: gl.constexpr = b_smem.shape[0]
    GROUPS: gl.constexpr = a_smem.shape[0] // STAGES
    BLOCK_N: gl.constexpr = b_smem.shape[1] * b_smem.shape[2] // BLOCK_K
    # A thread of 16 warps has 128 registers until it asks for more: too few for a product of 256 columns at once
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128 if GROUPS == 3 else BLOCK_N, 16])
    step, stored = 0, 0
    for pid in range(gl.program_id(0), units(tiles, GROUPS), gl.num_programs(0)):
        pid_m, pid_n, only = unit(pid, tiles, GROUP_M, GROUPS)
        is_mine = (only < 0) | (only == GROUP)
        steps = gl.where(is_mine, num_k, 0)
        columns = gl.where(is_mine, c_out.shape[1] if N is None else N, 0)  # 0: nothing is stored
        acc = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
        for k in range(steps):
            slot, is_odd = step % STAGES, (step // STAGES) & 1
            a, b = a_smem.index(slot * GROUPS + GROUP), b_smem.index(slot)
            a = a.permute([1, 0]) if A_IS_TRANSPOSED else a
            b = b.permute([1, 0]) if B_IS_TRANSPOSED else b
            mbarrier.wait(full.index(slot), is_odd)
            acc = warpgroup_mma(a, b, acc, is_async=True)
            acc = warpgroup_mma_wait(1, [acc])  # the product of the step before is complete
            barrier()  # all four warps have read its stage
            mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1, pred=k > 0)
            step += 1
        acc = warpgroup_mma_wait(0, [acc])
        barrier()
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1, pred=is_mine)
        for _ in range(steps, num_k):  # another group's rows
            mbarrier.wait(full.index(step % STAGES), (step // STAGES) & 1)
            mbarrier.arrive(empty.index(step % STAGES), count=1)
            step += 1
        sums = parts(acc)
        for i in gl.static_range(len(sums)):
            start_m, start_n = (pid_m * GROUPS + GROUP) * ROWS, pid_n * BLOCK_N + i * 64
            if start_n < columns:
                c = c_smem.index(GROUP * 2 + stored % 2)
                tma.store_wait(1)
                barrier()  # what was in c has been read
                c.store(sums[i].to(c_smem.dtype))
                fence_async_shared()
                barrier()
                if N is None:
                    tma.async_copy_shared_to_global(c_out, [start_m, start_n], c)
                else:
                    store(c_out, c, start_m, start_n, M, N)
                stored += 1
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["num_pid_m", "num_pid_n", "whole", "num_k"])  # one compilation for all of their numbers
def matmul_kernel(
    a_desc, b_desc, c_out, M, N, num_pid_m, num_pid_n, whole, num_k,
    A_T: gl.constexpr, B_T: gl.constexpr, GROUPS: gl.constexpr, STAGES: gl.constexpr, GROUP_M: gl.constexpr,
    REGISTERS: gl.constexpr,
):  # fmt: skip
    b_block: gl.constexpr = b_desc.block_shape
    a_smem = gl.allocate_shared_memory(a_desc.dtype, [STAGES * GROUPS, ROWS, BLOCK_K], a_desc.layout)
    b_smem = gl.allocate_shared_memory(b_desc.dtype, [STAGES, b_block[0], b_block[1]], b_desc.layout)
    c_smem = gl.allocate_shared_memory(a_desc.dtype, [GROUPS * 2, ROWS, 64], gl.NVMMASharedLayout(128, 16, 2))
    bars = barriers(STAGES), barriers(STAGES, GROUPS)
    fence_async_shared()
    out, smem, tiles = (c_out, M, N), (a_smem, b_smem, c_smem), (num_pid_m, num_pid_n, whole)
    # Each list: the warps and registers of all partitions but the first
    if GROUPS == 2:
        gl.warp_specialize(
            [
                (compute, (out, smem, bars, tiles, num_k, A_T, B_T, GROUP_M, 0)),
                (compute, (out, smem, bars, tiles, num_k, A_T, B_T, GROUP_M, 1)),
                (load, ((a_desc, b_desc), (a_smem, b_smem), bars, tiles, num_k, A_T, B_T, GROUP_M)),
            ],
            [4, 1], [REGISTERS, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [
                (compute, (out, smem, bars, tiles, num_k, A_T, B_T, GROUP_M, 0)),
                (compute, (out, smem, bars, tiles, num_k, A_T, B_T, GROUP_M, 1)),
                (compute, (out, smem, bars, tiles, num_k, A_T, B_T, GROUP_M, 2)),
                (load, ((a_desc, b_desc), (a_smem, b_smem), bars, tiles, num_k, A_T, B_T, GROUP_M)),
            ],
            [4, 4, 1], [REGISTERS, REGISTERS, 24],
        )  # fmt: skip


def setup(a, b):
    return {"programs": torch.cuda.get_device_properties(a.device).multi_processor_count}


def run(a, b, programs):
    (M, K), N = a.shape, b.shape[1]
    if a.dtype == torch.float32 or min(M, N) < ROWS.value or not K:  # or: a tile would be mostly empty
        return a @ b
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    out = (c, M, N) if N % 8 else (blocks(c, 64, 64), None, None)  # TMA stores rows at multiples of 16 bytes
    (a, a_is_transposed), (b, b_is_transposed) = describable(a), describable(b)
    columns, grid, numbers, constants = plan(M, N, K, programs, in_lines(a, b))
    b_block = (columns, 64) if b_is_transposed else (64, columns)
    constants = a_is_transposed, b_is_transposed, *constants
    key = M, N, K, a.stride(), b.stride(), a.dtype, a.device, constants
    arguments = blocks(a, 64, 64), blocks(b, *b_block), *out, *numbers, *constants
    launch(matmul_kernel, grid, *arguments, key=key, num_warps=4)
    return c
