"""Attention in Gluon for capability 9.0: one warp loads, and the softmax runs beside products.

Problem: in `optimized_attention_overlapped.py` the compiler decides who copies, who waits, and what a thread holds. The
warps that multiply also ask for the copies. Each program, of 64 or 128 queries, reads k and v for itself.
Idea: Gluon is Triton with these decisions in the program. A program has 128 or 192 queries of a head, and partitions:

    load      1 warp                 asks TMA for q, then for blocks of k and v, as stages become free
    attend    2 or 3 times 4 warps   each has 64 queries, with o and the online softmax of these rows in registers

They meet only at barriers in shared memory (`mbarrier`): a stage is full, a stage is free. Products are asynchronous
(`wgmma`): a group issues q @ k[j].T and p @ v[j-1], and waits for the first only. The softmax of block j runs beside
the second, and beside the products of the other groups. Only the block in which a group's rows end is masked, and it
comes first.
Cost: it runs on capability 9.0 only, and multiplies 16 bits (float32, and more than 256 dimensions: torch's plain
operations). With 128 keys of d = 128, the scores, the weights and o take 64 + 32 + 64 registers of a thread.
Predict: for 128 queries and 128 keys an SM needs 2048 cycles for both products at d = 128, 1024 at d = 64, and 1024 for
the exponentials. How many times as fast as products and exponentials in turn can it be at most, at each d?
"""

import attending
import torch
import triton
from hopper import barrier, barriers, fence_async_shared, tiles
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

VERSUS = "overlapped"
REQUIRES = {"capability": (9, 0), "exact": True}
TOLERANCE = (0.1, 0.25)  # with a causal mask, values and errors of the first rows are much larger
ROWS = gl.constexpr(64)  # queries of a group
# Dimensions up to 64, 128 and 256 -> GROUPS, BLOCK_N, STAGES; GROUPS * 64 / BLOCK_N is at most STAGES
SHAPES = {64: (3, 128, 3), 128: (2, 128, 2), 256: (2, 64, 2)}
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(3))
    return {"q": q, "k": k, "v": v, "causal": causal}


def reference(q, k, v, causal):
    return attending.exact(q, k, v, causal)


def library(q, k, v, causal):
    return attending.by("FLASH_ATTENTION", q, k, v, causal)


def library_cudnn(q, k, v, causal):
    return attending.by("CUDNN_ATTENTION", q, k, v, causal)


def library_efficient(q, k, v, causal):
    return attending.by("EFFICIENT_ATTENTION", q, k, v, causal)


def cost(q, k, v, causal):
    return {"dram_bytes": 4 * q.nbytes, **attending.flops(2, q, causal)}  # read q, k, v, write o; q @ k.T, p @ v


@gluon.jit
def load(descs, smem, bars, head, start_m, steps, N_CTX):
    """A stage is what a group multiplies by in a step: a block of k (the last one first), v of the step before."""
    q_desc, k_desc, v_desc = descs
    q_smem, k_smem, v_smem = smem
    q_full, full, empty = bars
    GROUPS: gl.constexpr = q_smem.shape[0]
    STAGES: gl.constexpr = k_smem.shape[0]
    BLOCK_N: gl.constexpr = k_smem.shape[2]
    D: gl.constexpr = k_smem.shape[3]
    mbarrier.expect(q_full.index(0), GROUPS * ROWS * D * 2)
    for group in gl.static_range(GROUPS):
        rows = [head, start_m + group * ROWS, 0]
        tma.async_copy_global_to_shared(q_desc, rows, q_full.index(0), q_smem.index(group))
    for step in range(steps + 1):
        slot, start_n = step % STAGES, (steps - 1 - step) * BLOCK_N
        bar = full.index(slot)
        mbarrier.wait(empty.index(slot), ((step // STAGES) & 1) ^ 1)
        mbarrier.expect(bar, 2 * BLOCK_N * D * 2)
        # k of the last stage, and v of the first, lie outside: TMA reads nothing and fills in zeros
        tma.async_copy_global_to_shared(k_desc, [head, start_n, 0], bar, k_smem.index(slot))
        start_n = gl.where(step == 0, N_CTX, start_n + BLOCK_N)
        tma.async_copy_global_to_shared(v_desc, [head, start_n, 0], bar, v_smem.index(slot))


@gluon.jit
def attend(GROUP: gl.constexpr, o_desc, smem, bars, work, CAUSAL: gl.constexpr):
    q_smem, k_smem, v_smem = smem
    q_full, full, empty = bars
    head, start_m, steps, N_CTX, qk_scale = work
    STAGES: gl.constexpr = k_smem.shape[0]
    BLOCK_N: gl.constexpr = k_smem.shape[2]
    D: gl.constexpr = k_smem.shape[3]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)  # of p as left operand, in registers
    o_rows: gl.constexpr = gl.SliceLayout(1, o_layout)
    start_m += GROUP * ROWS
    first = gl.maximum(steps - 1 - (start_m + ROWS - 1) // BLOCK_N, 0) if CAUSAL else 0
    for step in range(first):  # blocks behind these rows: without the wait, the next one there could end a phase early
        mbarrier.wait(full.index(step), 0)
        barrier()  # no warp still waits for this phase
        mbarrier.arrive(empty.index(step), count=1)
    q = q_smem.index(GROUP).reshape([ROWS, D])
    zero = gl.zeros([ROWS, BLOCK_N], gl.float32, s_layout)
    acc = gl.zeros([ROWS, D], gl.float32, o_layout)
    mbarrier.wait(q_full.index(0), 0)
    mbarrier.wait(full.index(first), 0)
    qk = warpgroup_mma(q, k_smem.index(first).reshape([BLOCK_N, D]).permute([1, 0]), zero, use_acc=False)
    barrier()  # all have read k
    mbarrier.arrive(empty.index(first), count=1)
    offs_m = start_m + gl.arange(0, ROWS, gl.SliceLayout(1, s_layout))
    offs_n = (steps - 1 - first) * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, s_layout))
    limits = gl.expand_dims(offs_m, 1) if CAUSAL else N_CTX - 1
    qk = gl.where(gl.expand_dims(offs_n, 0) <= limits, qk, float("-inf"))
    m_i = gl.max(qk, 1)  # finite: every row sees column 0 of this block
    p = gl.exp2(qk * qk_scale - gl.expand_dims(m_i * qk_scale, 1))
    l_i = gl.sum(p, 1)
    weights = gl.convert_layout(p.to(q_smem.dtype), p_layout)
    slot = (first + 1) % STAGES
    mbarrier.wait(full.index(slot), ((first + 1) // STAGES) & 1)
    for step in range(first + 1, steps):
        k, v = k_smem.index(slot).reshape([BLOCK_N, D]), v_smem.index(slot).reshape([BLOCK_N, D])
        qk = warpgroup_mma(q, k.permute([1, 0]), zero, use_acc=False, is_async=True)
        acc = warpgroup_mma(weights, v, acc, is_async=True)
        qk = warpgroup_mma_wait(1, [qk])  # acc is still under way
        m_ij = gl.maximum(m_i, gl.max(qk, 1))
        p = gl.exp2(qk * qk_scale - gl.expand_dims(m_ij * qk_scale, 1))
        alpha = gl.exp2((m_i - m_ij) * qk_scale)
        l_i = l_i * alpha + gl.sum(p, 1)
        m_i = m_ij
        # A wait at a barrier is a branch, and ptxas moves no instruction across it: exponentials stay before acc's end
        mbarrier.wait(full.index((step + 1) % STAGES), ((step + 1) // STAGES) & 1)
        acc = warpgroup_mma_wait(0, [acc])
        barrier()  # all have read k and v
        mbarrier.arrive(empty.index(slot), count=1)
        acc *= gl.expand_dims(gl.convert_layout(alpha, o_rows), 1)
        weights = gl.convert_layout(p.to(q_smem.dtype), p_layout)
        slot = (step + 1) % STAGES
    acc = warpgroup_mma(weights, v_smem.index(slot).reshape([BLOCK_N, D]), acc, is_async=True)
    acc = warpgroup_mma_wait(0, [acc]) * gl.expand_dims(gl.convert_layout(1 / l_i, o_rows), 1)
    q.store(acc.to(q_smem.dtype))  # o takes the place of q
    fence_async_shared()
    barrier()
    tma.async_copy_shared_to_global(o_desc, [head, start_m, 0], q_smem.index(GROUP))
    tma.store_wait(0)


@gluon.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, N_CTX, qk_scale,
    CAUSAL: gl.constexpr, GROUPS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    BLOCK_M: gl.constexpr = GROUPS * ROWS
    BLOCK_N: gl.constexpr = k_desc.block_shape[1]
    D: gl.constexpr = k_desc.block_shape[2]
    blocks = (N_CTX + BLOCK_M - 1) // BLOCK_M
    head, start_m = gl.program_id(0) // blocks, (blocks - 1 - gl.program_id(0) % blocks) * BLOCK_M  # the longest first
    steps = ((gl.minimum(start_m + BLOCK_M, N_CTX) if CAUSAL else N_CTX) + BLOCK_N - 1) // BLOCK_N
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [GROUPS, 1, ROWS, D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, D], v_desc.layout)
    bars = barriers(1), barriers(STAGES), barriers(STAGES, GROUPS)
    fence_async_shared()
    smem, work = (q_smem, k_smem, v_smem), (head, start_m, steps, N_CTX, qk_scale)
    loads = (q_desc, k_desc, v_desc), smem, bars, head, start_m, steps, N_CTX
    # Each list: the warps and registers of all partitions but the first
    if GROUPS == 2:
        gl.warp_specialize(
            [
                (attend, (0, o_desc, smem, bars, work, CAUSAL)),
                (attend, (1, o_desc, smem, bars, work, CAUSAL)),
                (load, loads),
            ],
            [4, 1], [240, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [
                (attend, (0, o_desc, smem, bars, work, CAUSAL)),
                (attend, (1, o_desc, smem, bars, work, CAUSAL)),
                (attend, (2, o_desc, smem, bars, work, CAUSAL)),
                (load, loads),
            ],
            [4, 4, 1], [160, 160, 24],
        )  # fmt: skip


def run(q, k, v, causal):
    (batch, heads, n, d), width = q.shape, max(16, 1 << (q.shape[3] - 1).bit_length())
    if q.dtype == torch.float32 or width > 256 or not q.numel():
        return attending.by("MATH", q, k, v, causal)
    q, k, v = attending.widened(q, k, v, to=-(-d // 8) * 8)  # descriptors need rows of a multiple of 16 bytes
    o, (groups, block_n, stages) = torch.empty_like(q), SHAPES[max(width, 64)]
    attention_kernel[(triton.cdiv(n, groups * 64) * batch * heads,)](
        tiles(q, 64, width), tiles(k, block_n, width), tiles(v, block_n, width), tiles(o, 64, width), n,
        d**-0.5 * LOG2_E, CAUSAL=causal, GROUPS=groups, STAGES=stages, num_warps=4,
    )  # fmt: skip
    return o[..., :d].contiguous()
