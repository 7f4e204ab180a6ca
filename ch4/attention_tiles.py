"""Attention on capability 9.0: which tiles a program computes in turn, and the partition that loads q, k and v for it.

A program takes tiles of 1, 2 or 3 groups of 64 queries. More groups share what is loaded; fewer give more SMs a tile.

Tile i has rows (i % blocks) * `rows` ff. of head i // blocks, for blocks = ceil(n / rows). It takes as many steps as it
sees blocks of k, and `groups` - 1 more to begin and to end, as measured. A stage has what a step needs: a block of k,
the last one first, and v of the step before. For the first step of a tile that is the last v of the tile before. Stages
go round from tile to tile: what is loaded into them is counted, and never starts anew.
"""

from heapq import heapreplace

import torch
import triton
from hopper import barrier
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

ROWS = gl.constexpr(64)  # queries of a group
# Dimensions up to 64, 128 and 256 -> [(GROUPS, BLOCK_N, STAGES)]: the one that is expected to end first is taken
SHAPES = {64: [(1, 128, 3), (2, 128, 3), (3, 128, 3)], 128: [(1, 128, 2), (2, 128, 2)], 256: [(1, 64, 2), (2, 64, 2)]}
STEP = {1: 4, 2: 5, 3: 6}  # GROUPS -> the time of a step, as measured
NEAR = 2**24  # bytes of k and v that programs read at about the same time: more would leave L2 before they are shared


def plan(q, causal):
    """{"shape": of SHAPES, "turns_of": its `turns`, int32 [programs, most tiles + 1]} for q [batch, heads, n, d].

    Both are None in float32, for more than 256 dimensions, and without a query.
    """
    (batch, heads, n, d), programs = q.shape, torch.cuda.get_device_properties(q.device).multi_processor_count
    width = max(64, 1 << (d - 1).bit_length())
    if q.dtype == torch.float32 or width not in SHAPES or not q.numel():
        return {"shape": None, "turns_of": None}
    together = max(NEAR // (4 * n * width), 1) if causal else 1
    plans = [(turns(batch * heads, n, shape, causal, together, programs), shape) for shape in SHAPES[width]]
    (found, _), shape = min(plans, key=lambda plan: plan[0][1] * STEP[plan[1][0]])
    return {"shape": shape, "turns_of": torch.tensor(found, dtype=torch.int32, device=q.device)}


def turns(heads, n, shape, causal, together, programs):
    """(For each program its tiles in their turn, then -1s; the steps of the program that has most of them).

    `together` heads come at a time, the longest of their tiles first. A tile goes to the program that is expected to be
    free first.
    """
    groups, block_n, _ = shape
    rows = groups * ROWS.value
    blocks = triton.cdiv(n, rows)
    found = [[] for _ in range(min(programs, heads * blocks))]
    free = [(0, program) for program in range(len(found))]  # a heap: (after how many steps it is free, program)
    for first in range(0, heads, together):
        for block in reversed(range(blocks)):
            steps = triton.cdiv(min((block + 1) * rows, n) if causal else n, block_n) + groups - 1
            for head in range(first, min(first + together, heads)):
                time, program = free[0]
                found[program].append(head * blocks + block)
                heapreplace(free, (time + steps, program))
    most = max(map(len, found))
    return [tiles + [-1] * (most + 1 - len(tiles)) for tiles in found], max(free)[0]


@gluon.jit
def place(tile, N_CTX, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, CAUSAL: gl.constexpr):
    """(Head, first row, blocks of k) of a tile."""
    blocks = (N_CTX + BLOCK_M - 1) // BLOCK_M
    start_m = tile % blocks * BLOCK_M
    end = gl.minimum(start_m + BLOCK_M, N_CTX) if CAUSAL else N_CTX
    return tile // blocks, start_m, (end + BLOCK_N - 1) // BLOCK_N


@gluon.jit
def wait(full, count):
    """Until stage number `count` has been loaded."""
    mbarrier.wait(full.index(count % full.shape[0]), (count // full.shape[0]) & 1)


@gluon.jit
def release(empty, count):
    """Stage number `count`, after all warps of a group have read it."""
    barrier()
    mbarrier.arrive(empty.index(count % empty.shape[0]), count=1)


@gluon.jit
def load(CAUSAL: gl.constexpr, args):
    descs, smem, bars, work = args
    q_desc, k_desc, v_desc, _ = descs
    q_smem, k_smem, v_smem, o_smem = smem
    q_full, q_empty, full, empty = bars
    turn, N_CTX = work[0], work[1]
    GROUPS: gl.constexpr = o_smem.shape[0]
    Q_STAGES: gl.constexpr = q_smem.shape[0] // GROUPS
    STAGES: gl.constexpr = k_smem.shape[0]
    BLOCK_N: gl.constexpr = k_smem.shape[2]
    D: gl.constexpr = k_smem.shape[3]
    tile, i, count = gl.load(turn), 0, 0
    v_head, v_start = 0, N_CTX  # before the first tile: outside, where TMA reads nothing and fills in zeros
    while tile >= 0:
        turn += 1
        following = gl.load(turn)
        head, start_m, steps = place(tile, N_CTX, GROUPS * ROWS, BLOCK_N, CAUSAL)
        for step in range(steps):
            stage, start_n = count % STAGES, (steps - 1 - step) * BLOCK_N
            bar = full.index(stage)
            mbarrier.wait(empty.index(stage), ((count // STAGES) & 1) ^ 1)
            mbarrier.expect(bar, 2 * BLOCK_N * D * 2)
            tma.async_copy_global_to_shared(k_desc, [head, start_n, 0], bar, k_smem.index(stage))
            tma.async_copy_global_to_shared(v_desc, [v_head, v_start, 0], bar, v_smem.index(stage))
            v_head, v_start = head, start_n
            if step == 0:  # q after that v: groups that need it may still read the q that this one replaces
                for group in gl.static_range(GROUPS):
                    slot, rows = i % Q_STAGES * GROUPS + group, start_m + group * ROWS
                    mbarrier.wait(q_empty.index(slot), ((i // Q_STAGES) & 1) ^ 1)
                    mbarrier.expect(q_full.index(slot), ROWS * D * 2)
                    tma.async_copy_global_to_shared(q_desc, [head, rows, 0], q_full.index(slot), q_smem.index(slot))
            count += 1
        tile, i = following, i + 1
    stage = count % STAGES
    mbarrier.wait(empty.index(stage), ((count // STAGES) & 1) ^ 1)
    mbarrier.expect(full.index(stage), BLOCK_N * D * 2)
    tma.async_copy_global_to_shared(v_desc, [v_head, v_start, 0], full.index(stage), v_smem.index(stage))
