"""Attention backward tuned for capability 9.0, in Gluon: a warp loads, others multiply, and TMA adds up dq.

Problem: in `optimized_attention_backward_one_pass.py` the compiler decides who copies, who waits, and where a block
lies. Its loop waits for copies and products in turn, and each thread adds to dq by atomics.
Idea: Gluon is Triton with these decisions in the program. The forward pass is that of `optimized_attention_tuned.py`.
Backward, a program has BLOCK_N keys of a head and two partitions:

    load       1 warp          asks TMA for q, do, lse and delta, one block ahead of that in work
    compute    4 or 8 warps    s^T = k q^T and dp^T = v do^T: keys are rows, so p^T and ds^T lie in the registers from
                               which dv += p^T do and dk += ds^T q read them; ds also goes to shared memory, for dq

They meet at barriers in shared memory (`mbarrier`): a block is full, a block is free. Products are asynchronous
(`wgmma`): exponentials run beside dp, ds beside dv, the store of dq beside dk. TMA adds dq to memory.
Its cases: up to 64 dimensions an SM holds two programs, else one of twice as many keys; other dimensions are filled up
to a power of two; float32 and more than 128 dimensions are left to torch's plain operations.
Cost: capability 9.0 only. For 64 queries and 128 keys of d = 128, five products take an SM 2560 cycles, and 368 KiB go
to and from shared memory, 128 bytes a cycle.
Predict: which of the two is the limit then?
"""

import attention_common
import launches
import torch
from attention_tiles import plan
from forward import row_products, row_sums
from hopper import barrier, barriers, fence_async_shared, flat, tiles, tma_add
from optimized_attention_tuned import launch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

VERSUS = "one_pass"
REQUIRES = {"capability": (9, 0), "exact": True}
TOLERANCE = (0.1, 0.5)  # with a causal mask, gradients and errors of the first rows are much larger
STRESS = {
    "values around 100": "one weight of a row is 1: dp - rowsum(o * do) is what the rounding of two sums leaves, not 0",
    "values around 10,000": "the same", "values near -100": "the same",
}  # fmt: skip
BLOCK_M, STAGES = gl.constexpr(64), gl.constexpr(2)  # queries of a block; blocks of q, and of do, in shared memory
# Dimensions up to 64 and 128 -> BLOCK_N, warps that compute, registers a thread: at 64 an SM holds two programs
KEYS = {64: (64, 4, 128), 128: (128, 8, None)}
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v, do = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(4))
    return {"q": q, "k": k, "v": v, "do": do, "causal": causal}


@gluon.jit
def load(descs, smem, bars, head, start_n, first, steps, padded):
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc = descs
    q_smem, do_smem, k_smem, v_smem, lse_smem, delta_smem = smem
    kv_full, full, empty = bars
    D: gl.constexpr = q_desc.block_shape[2]
    mbarrier.expect(kv_full.index(0), 2 * k_desc.block_shape[1] * D * 2)
    tma.async_copy_global_to_shared(k_desc, [head, start_n, 0], kv_full.index(0), k_smem)
    tma.async_copy_global_to_shared(v_desc, [head, start_n, 0], kv_full.index(0), v_smem)
    for step in range(steps):
        slot, is_odd, start_m = step % STAGES, (step // STAGES) & 1, first + step * BLOCK_M
        mbarrier.wait(empty.index(slot), is_odd ^ 1)
        bar = full.index(slot)
        mbarrier.expect(bar, 2 * (BLOCK_M * D * 2 + BLOCK_M * 4))
        tma.async_copy_global_to_shared(q_desc, [head, start_m, 0], bar, q_smem.index(slot))
        tma.async_copy_global_to_shared(lse_desc, [head * padded + start_m], bar, lse_smem.index(slot))
        tma.async_copy_global_to_shared(do_desc, [head, start_m, 0], bar, do_smem.index(slot))
        tma.async_copy_global_to_shared(delta_desc, [head * padded + start_m], bar, delta_smem.index(slot))


@gluon.jit
def compute(
    smem, ds_smem, dq_smem, bars, descs, head, start_n, first, steps, N_CTX, qk_scale, sm_scale,
    CAUSAL: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    q_smem, do_smem, k_smem, v_smem, lse_smem, delta_smem = smem
    kv_full, full, empty = bars
    dq_desc, dk_desc, dv_desc = descs
    BLOCK_N: gl.constexpr = k_smem.shape[1]
    D: gl.constexpr = q_smem.shape[3]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_M, 16])
    sum_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, D, 16])
    dq_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, WARPS // 4], [16, D // (WARPS // 4), 16])
    a_layout: gl.constexpr = gl.DotOperandLayout(0, sum_layout, 2)  # of p and ds as left operands, in registers
    row_layout: gl.constexpr = gl.SliceLayout(0, s_layout)
    offs_n = start_n + gl.arange(0, BLOCK_N, gl.SliceLayout(1, s_layout))
    offs_m = gl.arange(0, BLOCK_M, row_layout)
    k, v = k_smem.reshape([BLOCK_N, D]), v_smem.reshape([BLOCK_N, D])
    zero, zero_dq = gl.zeros([BLOCK_N, BLOCK_M], gl.float32, s_layout), gl.zeros([BLOCK_M, D], gl.float32, dq_layout)
    dk, dv = gl.zeros([BLOCK_N, D], gl.float32, sum_layout), gl.zeros([BLOCK_N, D], gl.float32, sum_layout)
    mbarrier.wait(kv_full.index(0), 0)
    for step in range(steps):
        slot, is_odd, start_m = step % STAGES, (step // STAGES) & 1, first + step * BLOCK_M
        q, do = q_smem.index(slot).reshape([BLOCK_M, D]), do_smem.index(slot).reshape([BLOCK_M, D])
        mbarrier.wait(full.index(slot), is_odd)
        s = warpgroup_mma(k, q.permute([1, 0]), zero, use_acc=False, is_async=True)
        dp = warpgroup_mma(v, do.permute([1, 0]), zero, use_acc=False, is_async=True)
        lse = lse_smem.index(slot).load(row_layout)
        p = warpgroup_mma_wait(1, [s]) * qk_scale - gl.expand_dims(lse, 0)  # dp is still under way
        if CAUSAL:
            if start_m < start_n + BLOCK_N - 1:
                p = gl.where(gl.expand_dims(offs_n, 1) <= gl.expand_dims(offs_m + start_m, 0), p, float("-inf"))
        elif start_n + BLOCK_N > N_CTX:
            p = gl.where(gl.expand_dims(offs_n, 1) < N_CTX, p, float("-inf"))
        p = gl.exp2(p)
        dv = warpgroup_mma(gl.convert_layout(p.to(q_smem.dtype), a_layout), do, dv, is_async=True)
        dp = warpgroup_mma_wait(1, [dp])
        ds = (p * (dp - gl.expand_dims(delta_smem.index(slot).load(row_layout), 0))).to(q_smem.dtype)
        ds_smem.store(ds)
        fence_async_shared()
        tma.store_wait(0)
        barrier()  # ds is complete, and TMA has read the block of dq before
        dq = warpgroup_mma(ds_smem.permute([1, 0]), k, zero_dq, use_acc=False, is_async=True)
        dk = warpgroup_mma(gl.convert_layout(ds, a_layout), q, dk, is_async=True)
        dv, dq = warpgroup_mma_wait(1, [dv, dq])
        dq_smem.reshape([BLOCK_M, D]).store(dq)
        fence_async_shared()
        barrier()
        tma_add(dq_desc, [head, start_m, 0], dq_smem)
        dk = warpgroup_mma_wait(0, [dk])
        barrier()  # all have read q and do, and at the end k and v
        mbarrier.arrive(empty.index(slot), count=1)
    k.store((dk * sm_scale).to(q_smem.dtype))
    v.store(dv.to(q_smem.dtype))
    fence_async_shared()
    barrier()
    tma.async_copy_shared_to_global(dk_desc, [head, start_n, 0], k_smem)
    tma.async_copy_shared_to_global(dv_desc, [head, start_n, 0], v_smem)
    tma.store_wait(0)


@gluon.jit
def backward_kernel(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, dq_desc, dk_desc, dv_desc, N_CTX, padded, qk_scale, sm_scale,
    CAUSAL: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    BLOCK_N: gl.constexpr = k_desc.block_shape[1]
    D: gl.constexpr = q_desc.block_shape[2]
    start_n, head = gl.program_id(0) * BLOCK_N, gl.program_id(1)
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_M, D], q_desc.layout)
    do_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_M, D], do_desc.layout)
    k_smem = gl.allocate_shared_memory(q_desc.dtype, [1, BLOCK_N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(q_desc.dtype, [1, BLOCK_N, D], v_desc.layout)
    lse_smem = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_M], lse_desc.layout)
    delta_smem = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK_M], delta_desc.layout)
    ds_smem = gl.allocate_shared_memory(q_desc.dtype, [BLOCK_N, BLOCK_M], gl.NVMMASharedLayout(128, 16, 2))
    dq_smem = gl.allocate_shared_memory(gl.float32, [1, BLOCK_M, D], dq_desc.layout)
    bars = barriers(1), barriers(STAGES), barriers(STAGES)
    fence_async_shared()
    first = start_n if CAUSAL else 0  # queries before it see none of these keys
    steps = (N_CTX - first + BLOCK_M - 1) // BLOCK_M
    smem = q_smem, do_smem, k_smem, v_smem, lse_smem, delta_smem
    gl.warp_specialize(
        [
            (compute, (smem, ds_smem, dq_smem, bars, (dq_desc, dk_desc, dv_desc), head, start_n, first, steps, N_CTX,
                       qk_scale, sm_scale, CAUSAL, WARPS)),
            (load, ((q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc), smem, bars, head, start_n, first, steps,
                    padded)),
        ],
        [1], [24],  # the second partition's warps and registers
    )  # fmt: skip


def setup(q, k, v, do, causal):
    return plan(q, causal)


def run(q, k, v, do, causal, shape, turns_of):
    if shape is None or q.shape[3] > 128:
        return attention_common.gradients_by("MATH", q, k, v, do, causal)
    width, (q, k, v, do) = q.shape[3], attention_common.widened(q, k, v, do)
    scale, lse = width**-0.5, row_sums(q)
    o = launch(q, k, v, scale, causal, shape, turns_of, lse)
    (batch, heads, n, d), padded = q.shape, lse.shape[1]
    dq, dk, dv = torch.zeros_like(q, dtype=torch.float32), torch.empty_like(k), torch.empty_like(v)
    block_n, warps, registers = KEYS[64 if d <= 64 else 128]
    launches.launch(
        backward_kernel, (launches.cdiv(n, block_n), batch * heads),
        tiles(q, 64), tiles(k, block_n), tiles(v, block_n), tiles(do, 64), flat(lse), flat(row_products(o, do, padded)),
        tiles(dq, 64), tiles(dk, block_n), tiles(dv, block_n), n, padded, scale * LOG2_E, scale,
        CAUSAL=causal, WARPS=warps, num_warps=warps, maxnreg=registers, key=(q.shape, q.dtype, q.device, scale),
    )  # fmt: skip
    dq = torch.mul(dq, scale, out=torch.empty_like(q))  # one pass: it is rounded as it is scaled
    return tuple(each[..., :width].contiguous() for each in (dq, dk, dv))
