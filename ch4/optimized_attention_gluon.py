"""Attention in Gluon for capability 9.0: one warp loads for two groups of warps, which share k and v.

Problem: in `optimized_attention_overlapped.py` the compiler decides who copies, who waits, and what a thread holds. The
warps that multiply also ask for the copies. Each program, of 64 queries, reads k and v for itself.
Idea: Gluon is Triton with these decisions in the program. A program has 128 queries of a head and three partitions:

    load      1 warp             asks TMA for q, and for blocks of 128 keys, k and v apart, as stages become free
    attend    2 times 4 warps    each has 64 queries, with o and the online softmax of these rows in registers

They meet only at barriers in shared memory (`mbarrier`): a stage is full, a stage is free. Products are asynchronous
(`wgmma`): a group issues q @ k[j].T and p @ v[j-1], and waits for the first only. The softmax of block j runs beside
the second, and beside the products of the other group. Only the block in which the rows end is masked; it comes first.
Cost: it runs on capability 9.0 only. With 128 keys of d = 128 the scores, the weights and o take 64 + 32 + 64 of a
thread's registers. A block of k and v serves 128 queries, so that half the bytes come from L2.
Predict: for 128 queries and 128 keys an SM needs 2048 cycles for both products at d = 128, 1024 at d = 64, and 1024 for
the exponentials. How many times as fast as products and exponentials in turn can it be at most, at each d?
"""

import attention_common
import torch
import triton
from hopper import barrier, barriers, fence_async_shared, tiles
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

VERSUS = "overlapped"
REQUIRES = {"capability": (9, 0), "exact": True}
TOLERANCE = (0.1, 0.25)  # with a causal mask, values and errors of the first rows are much larger
ROWS, BLOCK_N, STAGES = gl.constexpr(64), gl.constexpr(128), gl.constexpr(2)  # queries of a group; keys of a block
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(3))
    return {"q": q, "k": k, "v": v, "causal": causal}


@gluon.jit
def wait(full, step):
    mbarrier.wait(full.index(step % STAGES), step // STAGES & 1)


@gluon.jit
def release(empty, step):
    barrier()  # all four warps have read it
    mbarrier.arrive(empty.index(step % STAGES), count=1)


@gluon.jit
def load_block(desc, smem, full, empty, step, head, start_n):
    stage = step % STAGES
    wait(empty, step + STAGES)  # the other phase: both groups have read what was in it; at first nothing was
    mbarrier.expect(full.index(stage), BLOCK_N * desc.block_shape[2] * 2)  # bytes
    tma.async_copy_global_to_shared(desc, [head, start_n, 0], full.index(stage), smem.index(stage))


@gluon.jit
def load(descs, smem, bars, head, start_m, steps):
    q_desc, k_desc, v_desc = descs
    q_smem, k_smem, v_smem = smem
    q_full, k_full, k_empty, v_full, v_empty = bars
    for group in gl.static_range(2):
        bar, rows = q_full.index(group), start_m + group * ROWS
        mbarrier.expect(bar, ROWS * q_desc.block_shape[2] * 2)
        tma.async_copy_global_to_shared(q_desc, [head, rows, 0], bar, q_smem.index(group))
    for step in range(steps):  # the last block first
        load_block(k_desc, k_smem, k_full, k_empty, step, head, (steps - 1 - step) * BLOCK_N)
        load_block(v_desc, v_smem, v_full, v_empty, step, head, (steps - 1 - step) * BLOCK_N)


@gluon.jit
def attend(o_desc, smem, bars, head, start_m, steps, N_CTX, qk_scale, CAUSAL: gl.constexpr, GROUP: gl.constexpr):
    q_smem, k_smem, v_smem = smem
    q_full, k_full, k_empty, v_full, v_empty = bars
    D: gl.constexpr = q_smem.shape[3]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)  # of p as left operand, in registers
    o_rows: gl.constexpr = gl.SliceLayout(1, o_layout)
    start_m += GROUP * ROWS
    q = q_smem.index(GROUP).reshape([ROWS, D])
    zero, acc = gl.zeros([ROWS, BLOCK_N], gl.float32, s_layout), gl.zeros([ROWS, D], gl.float32, o_layout)
    wait(q_full, GROUP)
    wait(k_full, 0)
    qk = warpgroup_mma(q, k_smem.index(0).reshape([BLOCK_N, D]).permute([1, 0]), zero, use_acc=False)
    release(k_empty, 0)
    offs_m = start_m + gl.arange(0, ROWS, gl.SliceLayout(1, s_layout))
    offs_n = (steps - 1) * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, s_layout))
    last_n = gl.expand_dims(offs_m, 1) if CAUSAL else N_CTX - 1
    qk = gl.where(gl.expand_dims(offs_n, 0) <= last_n, qk, float("-inf"))
    m_i = gl.max(qk, 1)  # finite: every row sees column 0 of this block
    p = gl.exp2(qk * qk_scale - gl.expand_dims(m_i * qk_scale, 1))
    l_i = gl.sum(p, 1)
    for step in range(1, steps):
        k = k_smem.index(step % STAGES).reshape([BLOCK_N, D])
        v = v_smem.index((step - 1) % STAGES).reshape([BLOCK_N, D])
        weights = gl.convert_layout(p.to(q.dtype), p_layout)
        wait(k_full, step)
        qk = warpgroup_mma(q, k.permute([1, 0]), zero, use_acc=False, is_async=True)
        wait(v_full, step - 1)
        acc = warpgroup_mma(weights, v, acc, is_async=True)
        qk = warpgroup_mma_wait(1, [qk])  # acc is still under way
        release(k_empty, step)
        m_ij = gl.maximum(m_i, gl.max(qk, 1))
        p = gl.exp2(qk * qk_scale - gl.expand_dims(m_ij * qk_scale, 1))
        alpha = gl.exp2((m_i - m_ij) * qk_scale)
        l_i, m_i = l_i * alpha + gl.sum(p, 1), m_ij
        acc = warpgroup_mma_wait(0, [acc])
        release(v_empty, step - 1)
        acc *= gl.expand_dims(gl.convert_layout(alpha, o_rows), 1)
    wait(v_full, steps - 1)
    v = v_smem.index((steps - 1) % STAGES).reshape([BLOCK_N, D])
    acc = warpgroup_mma(gl.convert_layout(p.to(q.dtype), p_layout), v, acc)
    q.store((acc * gl.expand_dims(gl.convert_layout(1 / l_i, o_rows), 1)).to(q.dtype))  # o takes q's place
    fence_async_shared()
    barrier()
    tma.async_copy_shared_to_global(o_desc, [head, start_m, 0], q_smem.index(GROUP))
    tma.store_wait(0)


@gluon.jit
def attention_kernel(q_desc, k_desc, v_desc, o_desc, N_CTX, qk_scale, CAUSAL: gl.constexpr):
    start_m, head = (gl.num_programs(0) - 1 - gl.program_id(0)) * 2 * ROWS, gl.program_id(1)  # the longest first
    steps = ((gl.minimum(start_m + 2 * ROWS, N_CTX) if CAUSAL else N_CTX) + BLOCK_N - 1) // BLOCK_N
    D: gl.constexpr = q_desc.block_shape[2]
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [2, 1, ROWS, D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, D], v_desc.layout)
    smem = q_smem, k_smem, v_smem
    bars = barriers(2), barriers(STAGES), barriers(STAGES, 2), barriers(STAGES), barriers(STAGES, 2)  # 2: both groups
    fence_async_shared()
    gl.warp_specialize([
        (attend, (o_desc, smem, bars, head, start_m, steps, N_CTX, qk_scale, CAUSAL, 0)),
        (attend, (o_desc, smem, bars, head, start_m, steps, N_CTX, qk_scale, CAUSAL, 1)),
        (load, ((q_desc, k_desc, v_desc), smem, bars, head, start_m, steps)),
    ], [4, 1], [240, 24])  # fmt: skip  # warps and registers of all partitions but the first


def run(q, k, v, causal):
    d, (q, k, v) = q.shape[3], attention_common.widened(q, k, v)  # to a power of two, with zeros
    o, (batch, heads, n, _) = torch.empty_like(q), q.shape
    descs = tiles(q, 64), tiles(k, 128), tiles(v, 128), tiles(o, 64)
    grid = (triton.cdiv(n, 128), batch * heads)
    attention_kernel[grid](*descs, n, d**-0.5 * LOG2_E, CAUSAL=causal, num_warps=4)
    return o[..., :d].contiguous()
