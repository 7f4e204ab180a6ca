"""A step of the model in five kernels a layer. Weights are read once, in rows; x stays float32 from layer to layer.

    embed      x = the token's row of the embedding
    project    y = W norm(x)                  queries, keys and values; at the end the head
    attend     the new key and value into the cache, attention of all heads
    add        x += W y                       after attention, and after SwiGLU
    gate_up    y = silu(Wg norm(x)) Wu norm(x)

Each program holds whole rows of W in registers: all of its loads are in flight before the first sum. With PDL the
kernel may start before the one in front of it has ended (dependent launch): it loads what does not depend on that one,
its weights and the old rows of the cache, and waits only then.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

SPLITS = 16  # programs that share the keys of a head: 4 heads * 16 are on half of an H200's SMs
KEYS = 64  # of a block
TILES = {  # kernel, padded K -> rows, warps: in the whole model on an H200 faster than `tile`'s usual ones
    ("qkv", 2048): (2, 1), ("out", 2048): (2, 2), ("gate_up", 2048): (2, 1), ("down", 8192): (4, 8),
    ("qkv", 4096): (4, 4), ("out", 4096): (4, 4), ("down", 16_384): (2, 4),
}  # fmt: skip


@triton.jit
def wait(PDL: tl.constexpr):
    """For the kernel in front; else at a barrier, which also keeps the loads that stand before it there."""
    if PDL:
        gdc_wait()
    else:
        tl.debug_barrier()


@triton.jit
def weight_rows(w_ptr, rows, N, K: tl.constexpr, KP: tl.constexpr):
    """[rows, KP] of W [N, K], each element read once: it need not stay in L2. Rows beyond N repeat the last."""
    cols = tl.arange(0, KP)[None, :]
    at = w_ptr + tl.minimum(rows, N - 1).to(tl.int64)[:, None] * K + cols
    if K == KP:  # no mask: an instruction fewer for each load
        w = tl.load(at, eviction_policy="evict_first")
    else:
        w = tl.load(at, mask=cols < K, other=0.0, eviction_policy="evict_first")
    return w


@triton.jit
def embed(token_ptr, w_ptr, x_ptr, H, HP: tl.constexpr, PDL: tl.constexpr):
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    cols = tl.arange(0, HP)
    row = tl.load(w_ptr + tl.load(token_ptr) * H + cols, mask=cols < H, other=0.0)
    tl.store(x_ptr + cols, row.to(tl.float32), mask=cols < H)


@triton.jit
def project(
    x_ptr, gain_ptr, w_ptr, y_ptr, N, K: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr, KP: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    if PDL:
        gdc_launch_dependents()
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, KP)
    w = weight_rows(w_ptr, rows, N, K, KP)
    gain = tl.load(gain_ptr + cols, mask=cols < K, other=0.0).to(tl.float32)
    wait(PDL)
    x = tl.load(x_ptr + cols, mask=cols < K, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, 0) / K + EPS)  # applied last: the two sums do not wait for each other
    tl.store(y_ptr + rows, tl.sum(w.to(tl.float32) * (x * gain)[None, :], 1) * rstd, mask=rows < N)


@triton.jit
def gate_up(
    x_ptr, gain_ptr, w_ptr, y_ptr, F, K: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr, KP: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    if PDL:
        gdc_launch_dependents()
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, KP)
    w_gate = weight_rows(w_ptr, rows, F, K, KP)
    w_up = weight_rows(w_ptr + tl.cast(F, tl.int64) * K, rows, F, K, KP)
    gain = tl.load(gain_ptr + cols, mask=cols < K, other=0.0).to(tl.float32)
    wait(PDL)
    x = tl.load(x_ptr + cols, mask=cols < K, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, 0) / K + EPS)
    x = (x * gain)[None, :]
    gate, up = tl.sum(w_gate.to(tl.float32) * x, 1) * rstd, tl.sum(w_up.to(tl.float32) * x, 1) * rstd
    tl.store(y_ptr + rows, gate / (1 + tl.exp(-gate)) * up, mask=rows < F)


@triton.jit
def add(y_ptr, w_ptr, x_ptr, N, K: tl.constexpr, ROWS: tl.constexpr, KP: tl.constexpr, PDL: tl.constexpr):
    if PDL:
        gdc_launch_dependents()
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, KP)
    w = weight_rows(w_ptr, rows, N, K, KP)
    wait(PDL)
    y = tl.load(y_ptr + cols, mask=cols < K, other=0.0)
    x = tl.load(x_ptr + rows, mask=rows < N, other=0.0)
    tl.store(x_ptr + rows, x + tl.sum(w.to(tl.float32) * y[None, :], 1), mask=rows < N)


@triton.jit
def old_rows(k_ptr, v_ptr, keys, end, D: tl.constexpr):
    """Keys [keys, D / 2] twice, in halves as the rotary embedding pairs channels, and values [keys, D]."""
    half, whole, mask = tl.arange(0, D // 2)[None, :], tl.arange(0, D)[None, :], (keys < end)[:, None]
    low = tl.load(k_ptr + keys[:, None] * D + half, mask=mask, other=0.0)
    high = tl.load(k_ptr + keys[:, None] * D + D // 2 + half, mask=mask, other=0.0)
    return low, high, tl.load(v_ptr + keys[:, None] * D + whole, mask=mask, other=0.0)


@triton.jit
def merge(sums_ptr, stats_ptr, y_ptr, head, G: tl.constexpr, GM: tl.constexpr, S: tl.constexpr, D: tl.constexpr):
    """Attention of a group's G heads, from S programs' maxima, totals and sums. (.cg: from L2, where they are.)"""
    g, s, d = tl.arange(0, GM), tl.arange(0, S), tl.arange(0, D)
    at, mask = (head * G + g)[:, None] * S + s[None, :], (g < G)[:, None]
    top = tl.load(stats_ptr + 2 * at, mask=mask, other=0.0, cache_modifier=".cg")
    total = tl.load(stats_ptr + 2 * at + 1, mask=mask, other=1.0, cache_modifier=".cg")
    sums = tl.load(sums_ptr + at[:, :, None] * D + d[None, None, :], mask=mask[:, :, None], other=0.0,
                   cache_modifier=".cg")  # fmt: skip
    share = tl.exp(top - tl.max(top, 1)[:, None])
    y = tl.sum(share[:, :, None] * sums, 1) / tl.sum(share * total, 1)[:, None]
    tl.store(y_ptr + (head * G + g)[:, None] * D + d[None, :], y, mask=mask)


@triton.jit
def history(
    k_ptr, v_ptr, cos_ptr, sin_ptr, position_ptr, head, s, C, S: tl.constexpr, D: tl.constexpr, B: tl.constexpr
):
    """What the s-th share of a head needs and no kernel in front makes: its first rows, and the angles."""
    position = tl.load(position_ptr).to(tl.int32)
    share = tl.cdiv(position, S)
    first, end = s * share, min((s + 1) * share, position)
    k_ptr += tl.cast(head, tl.int64) * C * D
    v_ptr += tl.cast(head, tl.int64) * C * D
    low, high, value = old_rows(k_ptr, v_ptr, first + tl.arange(0, B), end, D)
    half = tl.arange(0, D // 2)
    cos = tl.load(cos_ptr + position * (D // 2) + half)
    sin = tl.load(sin_ptr + position * (D // 2) + half)
    return position, first, end, k_ptr, v_ptr, low, high, value, cos, sin


@triton.jit
def share(
    old, qkv_ptr, sums_ptr, stats_ptr, head, s, heads, G: tl.constexpr, GP: tl.constexpr, S: tl.constexpr,
    D: tl.constexpr, B: tl.constexpr, CACHE: tl.constexpr,
):  # fmt: skip
    """Attention of a head's G queries to its s-th share of rows: maxima, totals and sums. `old`: of `history`.

    CACHE: ".cg" where programs of the same kernel wrote `qkv`, since L1 may hold older values; else "".
    """
    position, first, end, k_ptr, v_ptr, low, high, value, cos, sin = old
    keys, half, d = tl.arange(0, B), tl.arange(0, D // 2), tl.arange(0, D)
    g = tl.arange(0, GP)
    dtype: tl.constexpr = k_ptr.dtype.element_ty
    at, mask = (head * G + g)[:, None] * D + half[None, :], (g < G)[:, None]
    q1 = tl.load(qkv_ptr + at, mask=mask, other=0.0, cache_modifier=CACHE) * D**-0.5
    q2 = tl.load(qkv_ptr + at + D // 2, mask=mask, other=0.0, cache_modifier=CACHE) * D**-0.5
    q_low, q_high = q1 * cos[None, :] - q2 * sin[None, :], q2 * cos[None, :] + q1 * sin[None, :]
    key_ptr = qkv_ptr + (heads * G + head) * D
    k1 = tl.load(key_ptr + half, cache_modifier=CACHE)
    k2 = tl.load(key_ptr + D // 2 + half, cache_modifier=CACHE)
    new_low, new_high = k1 * cos - k2 * sin, k2 * cos + k1 * sin
    new_value = tl.load(key_ptr + heads * D + d, cache_modifier=CACHE)
    if s == 0:
        tl.store(k_ptr + tl.cast(position, tl.int64) * D + half, new_low.to(dtype))
        tl.store(k_ptr + tl.cast(position, tl.int64) * D + D // 2 + half, new_high.to(dtype))
        tl.store(v_ptr + tl.cast(position, tl.int64) * D + d, new_value.to(dtype))
    new_score = tl.sum(q_low * new_low[None, :], 1) + tl.sum(q_high * new_high[None, :], 1)
    top = tl.where(s == 0, new_score, -float("inf"))  # the first share begins with the new token
    total = tl.where(s == 0, 1.0, tl.zeros((GP,), tl.float32))
    sums = tl.where(s == 0, new_value[None, :], tl.zeros((GP, D), tl.float32))
    for start in range(first, end, B):
        scores = tl.dot(q_low.to(dtype), low.T, input_precision="ieee")
        scores = tl.dot(q_high.to(dtype), high.T, scores, input_precision="ieee")
        scores = tl.where((start + keys < end)[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p, rescale = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
        total, top = total * rescale + tl.sum(p, 1), new_top
        sums = tl.dot(p.to(dtype), value, sums * rescale[:, None], input_precision="ieee")
        low, high, value = old_rows(k_ptr, v_ptr, start + B + keys, end, D)
    at = (head * G + g) * S + s
    tl.store(stats_ptr + 2 * at, top, mask=g < G)
    tl.store(stats_ptr + 2 * at + 1, total, mask=g < G)
    tl.store(sums_ptr + at[:, None] * D + d[None, :], sums, mask=mask)


@triton.jit
def attend(
    qkv_ptr, k_ptr, v_ptr, cos_ptr, sin_ptr, position_ptr, sums_ptr, stats_ptr, counter_ptr, y_ptr, C,
    G: tl.constexpr, GM: tl.constexpr, GP: tl.constexpr, S: tl.constexpr, D: tl.constexpr, B: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """Program (head, s): the s-th share of a key-value head's rows, for its G queries. The last to end merges."""
    if PDL:
        gdc_launch_dependents()
    head, s, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    old = history(k_ptr, v_ptr, cos_ptr, sin_ptr, position_ptr, head, s, C, S, D, B)
    wait(PDL)
    share(old, qkv_ptr, sums_ptr, stats_ptr, head, s, heads, G, GP, S, D, B, "")
    tl.debug_barrier()  # all threads have written
    if tl.atomic_add(counter_ptr + head, 1, sem="acq_rel") == S - 1:
        merge(sums_ptr, stats_ptr, y_ptr, head, G, GM, S, D)
        tl.store(counter_ptr + head, 0)  # for the next layer


def tile(kernel, K):
    """How many rows of K weights a program holds in registers, of each matrix, and its warps."""
    padded = triton.next_power_of_2(K)
    usual = ((8 if padded <= 8192 else 4) // (2 if kernel == "gate_up" else 1), min(max(padded // 1024, 2), 8))
    rows, warps = TILES.get((kernel, padded), usual)
    return {"KP": padded, "ROWS": rows, "num_warps": warps}


def buffers(cache_k, w_qkv, w_out, w_gate_up, w_head, **others):
    """What the kernels pass to each other, float32; counters are 0 between two launches."""
    (_, kv_heads, _, width), rows = cache_k.shape, w_out.shape[2]

    def floats(*shape):
        return torch.empty(shape, device=w_qkv.device)

    return {
        "x": floats(w_qkv.shape[2]), "qkv": floats(w_qkv.shape[1]), "y": floats(rows),
        "inner": floats(w_gate_up.shape[1] // 2), "logits": w_head.new_empty(len(w_head)),
        "sums": floats(rows // width, SPLITS, width), "stats": floats(rows // width, SPLITS, 2),
        "counter": torch.zeros(kv_heads, dtype=torch.int32, device=w_qkv.device),
    }  # fmt: skip


def step(
    made, eps, pdl, token, position, cache_k, cache_v, w_cos, w_sin, w_embedding, w_norms, w_qkv, w_out, w_gate_up,
    w_down, w_head,
):  # fmt: skip
    """The logits [V], in the type of the weights, in a buffer that the next step overwrites. `made`: of `buffers`."""
    x, qkv, y, inner, logits = (made[name] for name in ("x", "qkv", "y", "inner", "logits"))
    (layers, kv_heads, C, D), (_, H, rows) = cache_k.shape, w_out.shape
    G, F = rows // D // kv_heads, w_down.shape[2]
    if triton.next_power_of_2(D) != D:
        raise ValueError(f"heads of {D} channels: these kernels need a power of two")
    group = {"G": G, "GM": triton.next_power_of_2(G), "GP": max(16, triton.next_power_of_2(G))}
    how = {"PDL": pdl} | ({"launch_pdl": True} if pdl else {})
    tiles = {name: tile(name, K) for name, K in (("qkv", H), ("out", rows), ("gate_up", H), ("down", F), ("head", H))}

    def launch(kernel, name, N, *arguments):
        kernel[(triton.cdiv(N, tiles[name]["ROWS"]),)](*arguments, **tiles[name], **how)

    embed[(1,)](token, w_embedding, x, H, HP=triton.next_power_of_2(H), **how)
    for i in range(layers):
        launch(project, "qkv", len(qkv), x, w_norms[2 * i], w_qkv[i], qkv, len(qkv), H, eps)
        attend[(kv_heads, SPLITS)](
            qkv, cache_k[i], cache_v[i], w_cos, w_sin, position, made["sums"], made["stats"], made["counter"], y, C,
            **group, S=SPLITS, D=D, B=KEYS, **how,
        )  # fmt: skip
        launch(add, "out", H, y, w_out[i], x, H, rows)
        launch(gate_up, "gate_up", F, x, w_norms[2 * i + 1], w_gate_up[i], inner, F, H, eps)
        launch(add, "down", H, inner, w_down[i], x, H, F)
    launch(project, "head", len(w_head), x, w_norms[-1], w_head, logits, len(w_head), H, eps)
    return logits
