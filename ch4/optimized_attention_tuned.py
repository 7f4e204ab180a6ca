"""Attention for any number of heads, rows and dimensions, tuned: as many programs as SMs, each with a list of tiles.

Problem: in `optimized_attention_gluon.py` a program has one tile of 128 queries. It begins when another one ends, and
loads before it multiplies. With a mask the programs differ in length, and with few heads most SMs have none.
Idea: the same partitions, and what it takes to be as fast at any shape:

    few tiles           64, 128 or 192 queries (`GROUPS` of 64): the shape that is expected to end first is taken
    uneven tiles        `attention_tiles.py` deals them out so that all programs end at about the same time
    a tile's ends       the next tile's k and q arrive while this one ends (q up to d = 128, where two have room)
    a group's mask      the first group's rows may end a block before the second's: it lets such blocks pass
    other dimensions    filled up to a multiple of 8 in memory, and to a power of two by TMA; up to 256
    backward            `lse`, each row's log-sum-exp, if it is asked for: `optimized_attention_backward_tuned.py`

float32, and more than 256 dimensions: torch's plain operations. A stage holds k of a step and v of the step before, so
that a group waits once for both.
Cost: capability 9.0 only. The list of tiles is made once for a shape (`setup`), on the CPU. Sides of a block are powers
of two: of d = 96, filled up to 128, a quarter of all products is with zeros.
Predict: with 4 x 32 heads, n = 1024 and a mask, tiles of 128 queries take 1 to 8 steps, and one more to begin and to
end. How many steps does the last of 132 programs take more than all do on average, if the longest are dealt out first?
"""

import attention_common
import launches
import torch
from attention_tiles import ROWS, load, place, plan, release, wait
from hopper import barrier, barriers, fence_async_shared, tiles
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

VERSUS = "gluon"
REQUIRES = {"capability": (9, 0), "exact": True}
TOLERANCE = (0.1, 0.25)  # with a causal mask, values and errors of the first rows are much larger
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(3))
    return {"q": q, "k": k, "v": v, "causal": causal}


@gluon.jit
def attend(GROUP: gl.constexpr, CAUSAL: gl.constexpr, args):
    descs, smem, bars, work = args
    q_smem, k_smem, v_smem, o_smem = smem
    q_full, q_empty, full, empty = bars
    turn, N_CTX, qk_scale, lse_ptr, padded = work
    GROUPS: gl.constexpr = o_smem.shape[0]
    Q_STAGES: gl.constexpr = q_smem.shape[0] // GROUPS
    STAGES: gl.constexpr = k_smem.shape[0]
    BLOCK_N: gl.constexpr = k_smem.shape[2]
    D: gl.constexpr = k_smem.shape[3]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)  # of p as left operand, in registers
    o_rows: gl.constexpr = gl.SliceLayout(1, o_layout)
    o = o_smem.index(GROUP).reshape([ROWS, D])
    zero = gl.zeros([ROWS, BLOCK_N], gl.float32, s_layout)
    tile, i, count = gl.load(turn), 0, 0
    wait(full, count)
    while tile >= 0:
        turn += 1
        following = gl.load(turn)
        head, start_m, steps = place(tile, N_CTX, GROUPS * ROWS, BLOCK_N, CAUSAL)
        # `where`: always. The compiler does not know, and keeps no masks in registers from tile to tile
        last = gl.where(start_m < N_CTX, steps - 1, 0)
        start_m += GROUP * ROWS
        skipped = gl.maximum(last - (start_m + ROWS - 1) // BLOCK_N, 0) if CAUSAL else 0
        for _ in range(skipped):  # blocks behind these rows: without the wait, the next could end a phase early
            release(empty, count)
            count += 1
            wait(full, count)
        last -= skipped
        acc = gl.zeros([ROWS, D], gl.float32, o_layout)
        slot = i % Q_STAGES * GROUPS + GROUP
        q = q_smem.index(slot).reshape([ROWS, D])
        mbarrier.wait(q_full.index(slot), (i // Q_STAGES) & 1)
        k = k_smem.index(count % STAGES).reshape([BLOCK_N, D])
        qk = warpgroup_mma(q, k.permute([1, 0]), zero, use_acc=False)
        offs_m = start_m + gl.arange(0, ROWS, gl.SliceLayout(1, s_layout))
        offs_n = last * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, s_layout))
        limits = gl.expand_dims(offs_m, 1) if CAUSAL else N_CTX - 1
        qk = gl.where(gl.expand_dims(offs_n, 0) <= limits, qk, float("-inf"))
        m_i = gl.max(qk, 1)  # finite: every row sees column 0 of this block
        p = gl.exp2(qk * qk_scale - gl.expand_dims(m_i * qk_scale, 1))
        l_i = gl.sum(p, 1)
        wait(full, count + 1)
        release(empty, count)  # right after the product would be slower, as measured
        count += 1
        weights = gl.convert_layout(p.to(q_smem.dtype), p_layout)
        for _ in range(last):
            k = k_smem.index(count % STAGES).reshape([BLOCK_N, D])
            v = v_smem.index(count % STAGES).reshape([BLOCK_N, D])
            qk = warpgroup_mma(q, k.permute([1, 0]), zero, use_acc=False, is_async=True)
            acc = warpgroup_mma(weights, v, acc, is_async=True)
            qk = warpgroup_mma_wait(1, [qk])  # acc is still under way
            m_ij = gl.maximum(m_i, gl.max(qk, 1))
            p = gl.exp2(qk * qk_scale - gl.expand_dims(m_ij * qk_scale, 1))
            alpha = gl.exp2((m_i - m_ij) * qk_scale)
            l_i = l_i * alpha + gl.sum(p, 1)
            m_i = m_ij
            # A wait is a branch, and ptxas moves no instruction across it: exponentials stay before acc's end
            wait(full, count + 1)
            acc = warpgroup_mma_wait(0, [acc])
            release(empty, count)
            count += 1
            acc *= gl.expand_dims(gl.convert_layout(alpha, o_rows), 1)
            weights = gl.convert_layout(p.to(q_smem.dtype), p_layout)
        if D <= 128:
            mbarrier.arrive(q_empty.index(slot), count=1)  # all warps have read q
        if lse_ptr is not None:
            gl.store(lse_ptr + head.to(gl.int64) * padded + offs_m, m_i * qk_scale + gl.log2(l_i), mask=offs_m < N_CTX)
        acc = warpgroup_mma(weights, v_smem.index(count % STAGES).reshape([BLOCK_N, D]), acc)
        acc *= gl.expand_dims(gl.convert_layout(1 / l_i, o_rows), 1)
        tma.store_wait(0)  # the o before has been read; the compiler adds a barrier
        o.store(acc.to(q_smem.dtype))
        fence_async_shared()
        barrier()
        tma.async_copy_shared_to_global(descs[3], [head, start_m, 0], o_smem.index(GROUP))
        if D > 128:  # o is in q's place
            tma.store_wait(0)
            release(q_empty, GROUP)
        tile, i = following, i + 1
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["stride_turns"])
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, turns_ptr, stride_turns, N_CTX, qk_scale, lse_ptr, padded,
    CAUSAL: gl.constexpr, GROUPS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    BLOCK_N: gl.constexpr = k_desc.block_shape[1]
    D: gl.constexpr = k_desc.block_shape[2]
    Q_STAGES: gl.constexpr = 2 if D <= 128 else 1
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [Q_STAGES * GROUPS, 1, ROWS, D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, D], v_desc.layout)
    # Of 256 dimensions there is no room for both
    o_smem = q_smem if D > 128 else gl.allocate_shared_memory(q_desc.dtype, [GROUPS, 1, ROWS, D], o_desc.layout)
    bars = barriers(Q_STAGES * GROUPS), barriers(Q_STAGES * GROUPS), barriers(STAGES), barriers(STAGES, GROUPS)
    fence_async_shared()
    descs, smem = (q_desc, k_desc, v_desc, o_desc), (q_smem, k_smem, v_smem, o_smem)
    work = turns_ptr + gl.program_id(0) * stride_turns, N_CTX, qk_scale, lse_ptr, padded
    args = descs, smem, bars, work
    # Each list: the warps and registers of all partitions but the first
    if GROUPS == 1:
        gl.warp_specialize([(attend, (0, CAUSAL, args)), (load, (CAUSAL, args))], [1], [24])
    elif GROUPS == 2:
        gl.warp_specialize([
            (attend, (0, CAUSAL, args)), (attend, (1, CAUSAL, args)), (load, (CAUSAL, args)),
        ], [4, 1], [240, 24])  # fmt: skip
    else:
        gl.warp_specialize([
            (attend, (0, CAUSAL, args)), (attend, (1, CAUSAL, args)), (attend, (2, CAUSAL, args)),
            (load, (CAUSAL, args)),
        ], [4, 4, 1], [160, 160, 24])  # fmt: skip


def launch(q, k, v, scale, causal, shape, turns_of, lse=None):
    """o for q, k, v [batch, heads, n, d], contiguous, d a multiple of 8; shape, turns_of: `plan`'s.

    lse: where to write log2 of each row's sum of e^(s * scale), float32 [batch * heads, n or more].
    """
    width, o, (groups, block_n, stages) = max(16, 1 << (q.shape[3] - 1).bit_length()), torch.empty_like(q), shape
    launches.launch(
        attention_kernel, (len(turns_of),),
        tiles(q, 64, width), tiles(k, block_n, width), tiles(v, block_n, width), tiles(o, 64, width),
        turns_of, turns_of.shape[1], q.shape[2], scale * LOG2_E, lse, None if lse is None else lse.shape[1],
        CAUSAL=causal, GROUPS=groups, STAGES=stages, num_warps=4,
        key=(q.shape, q.dtype, q.device, scale, turns_of.shape, lse is None),
    )  # fmt: skip
    return o


def setup(q, k, v, causal):
    return plan(q, causal)


def run(q, k, v, causal, shape, turns_of):
    if shape is None:
        return attention_common.by("MATH", q, k, v, causal)
    d, (q, k, v) = q.shape[3], attention_common.widened(q, k, v, to=-(-q.shape[3] // 8) * 8)  # rows of 16 bytes times n
    return launch(q, k, v, d**-0.5, causal, shape, turns_of)[..., :d].contiguous()
