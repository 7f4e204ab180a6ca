"""A step of the model in one kernel. All programs are resident, and meet where one needs another's rows.

A layer is four products and attention. Of each product a program owns a part of the rows, and reads it in tiles. Two
tiles are in its registers. As soon as one is summed, the next one is loaded in its place; in the place of the last two,
the first two of the next product. These depend on nothing that this kernel makes: one is asked for before the program
arrives, one before it waits.
"""

import torch
import triton
import triton.language as tl
from decode_kernels import KEYS, SPLITS, buffers, history, merge, share

PER_SM, WARPS = 2, 4  # 255 registers a thread: on an H200 nothing spills. Three do not fit on an SM, four spill
ELEMENTS = {"qkv": 8192, "out": 8192, "gate_up": 16_384, "down": 16_384}  # of a tile, padded
LINE = 32  # counters of 4 bytes lie a cache line apart
PHASES, MERGES, LEFT, SHARES = (tl.constexpr(i * LINE) for i in range(4))  # counters; the last: one for each head


@triton.jit
def arrive(counter_ptr):
    tl.debug_barrier()  # all threads have written
    tl.atomic_add(counter_ptr, 1, sem="release")


@triton.jit
def meet(counter_ptr, count):
    """Until `count` have arrived. One thread asks, by adding 0: Triton has no load that acquires.

    What other programs wrote is read from L2 (.cg): this SM's L1 may hold older values.
    """
    while tl.atomic_add(counter_ptr, 0, sem="acquire") < count:
        pass
    tl.debug_barrier()


@triton.jit
def tile(w_ptr, n, t, SHAPE: tl.constexpr):
    """Tile t of this program's part of n rows: [ROWS, KP]. Of gate and up rows alternate.

    Two weights of 16 bits are loaded as one word. Apart, each would take a register of 32 bits while it waits.
    """
    K: tl.constexpr = SHAPE[1] // SHAPE[7]
    KP: tl.constexpr = SHAPE[2] // SHAPE[7]
    PARTS: tl.constexpr = SHAPE[5]
    P: tl.constexpr = SHAPE[6]
    if SHAPE[7] == 2:
        w_ptr = w_ptr.to(tl.pointer_type(tl.int32))
    r, cols = tl.arange(0, SHAPE[3]), tl.arange(0, KP)[None, :]
    first, end, row = tl.program_id(0) * n // P, (tl.program_id(0) + 1) * n // P, t * (SHAPE[3] // PARTS)
    mask = (r // PARTS < end - first - row)[:, None]
    if K != KP:
        mask = mask & (cols < K)
    at = (r // PARTS * K + r % PARTS * SHAPE[0] * K)[:, None] + cols
    return tl.load(w_ptr + tl.cast(first + row, tl.int64) * K + at, mask=mask, other=0, eviction_policy="evict_first")


@triton.jit
def halves(word, DTYPE: tl.constexpr):
    """The two weights of a word, in float32. A bfloat16 is the upper half of one: one instruction for each."""
    if DTYPE.is_bf16():
        low, high = (word << 16).to(tl.float32, bitcast=True), (word & -65536).to(tl.float32, bitcast=True)
    else:
        low, high = word.to(tl.int16).to(DTYPE, bitcast=True), (word >> 16).to(tl.int16).to(DTYPE, bitcast=True)
    return low.to(tl.float32), high.to(tl.float32)


@triton.jit
def finish(w, t, x, rstd, y_ptr, DTYPE: tl.constexpr, SHAPE: tl.constexpr, ADD: tl.constexpr):
    """Sum tile t, and write its rows. Rows of x are added in L2: the program need not read them."""
    ROWS: tl.constexpr = SHAPE[3] // SHAPE[5]
    even, odd = x
    if SHAPE[7] == 2:
        low, high = halves(w, DTYPE)
        products = low * even[None, :] + high * odd[None, :]
    else:
        products = w.to(tl.float32) * even[None, :]
    y = tl.sum(products, 1) * rstd
    if SHAPE[5] == 2:
        gate, up = tl.split(tl.reshape(y, (ROWS, 2)))
        y = gate / (1 + tl.exp(-gate)) * up
    rows = tl.program_id(0) * SHAPE[0] // SHAPE[6] + t * ROWS + tl.arange(0, ROWS)
    mask = rows < (tl.program_id(0) + 1) * SHAPE[0] // SHAPE[6]
    if ADD:
        tl.atomic_add(y_ptr + rows, y, mask=mask, sem="relaxed")
    else:
        tl.store(y_ptr + rows, y, mask=mask)


@triton.jit
def product(
    a, b, w_ptr, x_ptr, gain_ptr, y_ptr, until_ptr, count, counter_ptr, next_ptr, next_n, SHAPE: tl.constexpr,
    NEXT: tl.constexpr, ADD: tl.constexpr, EPS: tl.constexpr,
):  # fmt: skip
    """Rows of W x, with x normalized unless they are added. a, b: its first two tiles. Returns those of the next."""
    cols, TILES = tl.arange(0, SHAPE[2]), SHAPE[4]
    if not ADD:
        gain = tl.load(gain_ptr + cols, mask=cols < SHAPE[1], other=0.0).to(tl.float32)
    meet(until_ptr, count)
    x = tl.load(x_ptr + cols, mask=cols < SHAPE[1], other=0.0, cache_modifier=".cg")
    rstd = 1.0
    if not ADD:
        rstd = tl.rsqrt(tl.sum(x * x, 0) / SHAPE[1] + EPS)  # applied last: the two sums do not wait for each other
        x = x * gain
    x = tl.split(tl.reshape(x, (SHAPE[2] // 2, 2))) if SHAPE[7] == 2 else (x, x)
    DTYPE: tl.constexpr = w_ptr.dtype.element_ty
    for t in range(0, (TILES - 2) // 2 * 2, 2):
        finish(a, t, x, rstd, y_ptr, DTYPE, SHAPE, ADD)
        a = tile(w_ptr, SHAPE[0], t + 2, SHAPE)
        finish(b, t + 1, x, rstd, y_ptr, DTYPE, SHAPE, ADD)
        b = tile(w_ptr, SHAPE[0], t + 3, SHAPE)
    if TILES % 2 == 1:
        finish(a, TILES - 3, x, rstd, y_ptr, DTYPE, SHAPE, ADD)
        a = b
        b = tile(w_ptr, SHAPE[0], TILES - 1, SHAPE)
    finish(a, TILES - 2, x, rstd, y_ptr, DTYPE, SHAPE, ADD)
    next_a = tile(next_ptr, next_n, 0, NEXT)
    finish(b, TILES - 1, x, rstd, y_ptr, DTYPE, SHAPE, ADD)
    arrive(counter_ptr)  # it waits for loads on the way: the second tile is asked for after it
    return next_a, tile(next_ptr, next_n, 1, NEXT)


@triton.jit
def one(
    token_ptr, position_ptr, k_ptr, v_ptr, cos_ptr, sin_ptr, embedding_ptr, norms_ptr, w_qkv_ptr, w_out_ptr,
    w_gate_up_ptr, w_down_ptr, w_head_ptr, x_ptr, qkv_ptr, y_ptr, inner_ptr, logits_ptr, sums_ptr, stats_ptr,
    counter_ptr, C, L, QKV: tl.constexpr, OUT: tl.constexpr, GATE_UP: tl.constexpr, DOWN: tl.constexpr,
    HEAD: tl.constexpr, KV: tl.constexpr, G: tl.constexpr, GM: tl.constexpr, GP: tl.constexpr, S: tl.constexpr,
    D: tl.constexpr, B: tl.constexpr, EPS: tl.constexpr,
):  # fmt: skip
    H: tl.constexpr = QKV[1]
    P: tl.constexpr = QKV[6]
    a, b = tile(w_qkv_ptr, QKV[0], 0, QKV), tile(w_qkv_ptr, QKV[0], 1, QKV)
    cols, done = tl.arange(0, QKV[2]), counter_ptr + PHASES
    row = tl.load(embedding_ptr + tl.load(token_ptr) * H + cols, mask=cols < H, other=0.0)
    tl.store(x_ptr + cols, row.to(tl.float32), mask=cols < H)  # all write the same: each finds x without a meeting
    for layer in tl.range(0, L, disable_licm=True):
        i, last = tl.cast(layer, tl.int64), layer == L - 1
        w_qkv, w_out, w_down = w_qkv_ptr + i * QKV[0] * H, w_out_ptr + i * H * OUT[1], w_down_ptr + i * H * DOWN[1]
        w_gate_up, gains_ptr, count = w_gate_up_ptr + i * 2 * GATE_UP[0] * H, norms_ptr + i * 2 * H, layer * 4 * P
        a, b = product(a, b, w_qkv, x_ptr, gains_ptr, qkv_ptr, done, count, done, w_out, H, QKV, OUT, False, EPS)
        for part in range(tl.program_id(0), KV * S, P):
            head, s, before = part // S, part % S, i * KV * C * D
            old = history(k_ptr + before, v_ptr + before, cos_ptr, sin_ptr, position_ptr, head, s, C, S, D, B)
            meet(done, count + P)
            share(old, qkv_ptr, sums_ptr, stats_ptr, head, s, KV, G, GP, S, D, B, ".cg")
            tl.debug_barrier()
            if tl.atomic_add(counter_ptr + SHARES + head, 1, sem="acq_rel") == S - 1:
                merge(sums_ptr, stats_ptr, y_ptr, head, G, GM, S, D)
                tl.store(counter_ptr + SHARES + head, 0)  # for the next layer
                arrive(counter_ptr + MERGES)
        a, b = product(
            a, b, w_out, y_ptr, gains_ptr, x_ptr, counter_ptr + MERGES, (layer + 1) * KV, done, w_gate_up, GATE_UP[0],
            OUT, GATE_UP, True, EPS,
        )  # fmt: skip
        a, b = product(
            a, b, w_gate_up, x_ptr, gains_ptr + H, inner_ptr, done, count + 2 * P, done, w_down, H, GATE_UP, DOWN,
            False, EPS,
        )  # fmt: skip
        next_ptr, next_n = tl.where(last, w_head_ptr, w_qkv + QKV[0] * H), tl.where(last, HEAD[0], QKV[0])
        a, b = product(
            a, b, w_down, inner_ptr, gains_ptr, x_ptr, done, count + 3 * P, done, next_ptr, next_n, DOWN, QKV, True,
            EPS,
        )  # fmt: skip
    product(
        a, b, w_head_ptr, x_ptr, norms_ptr + 2 * L * H, logits_ptr, done, 4 * L * P, done, w_head_ptr, 0, HEAD, HEAD,
        False, EPS,
    )  # fmt: skip
    if tl.atomic_add(counter_ptr + LEFT, 1, sem="acq_rel") == P - 1:  # nobody waits any more: all are 0 for the next
        tl.store(counter_ptr + PHASES, 0)
        tl.store(counter_ptr + MERGES, 0)
        tl.store(counter_ptr + LEFT, 0)


def programs(device):
    """As many as are resident at once; in Triton's interpreter, which runs one after the other, one."""
    return torch.cuda.get_device_properties(device).multi_processor_count * PER_SM if device.type != "cpu" else 1


def shapes(H, F, rows, qkv, vocabulary, P, bits):
    """Of each product, when the kernel is compiled: N, K, padded K, ROWS, tiles, parts, programs, weights a word."""

    def shape(name, N, K, parts=1):
        padded = triton.next_power_of_2(K)
        rows = max(ELEMENTS[name] // padded, parts)
        tiles = max(2, triton.cdiv(triton.cdiv(N, P) * parts, rows))
        return N, K, padded, rows, tiles, parts, P, 2 if bits == 16 and K % 2 == 0 else 1

    return {
        "QKV": shape("qkv", qkv, H), "OUT": shape("out", H, rows), "GATE_UP": shape("gate_up", F, H, 2),
        "DOWN": shape("down", H, F), "HEAD": shape("qkv", vocabulary, H),
    }  # fmt: skip


def made(cache_k, **weights):
    counters = torch.zeros(3 * LINE + cache_k.shape[1], dtype=torch.int32, device=cache_k.device)
    return buffers(cache_k, **weights) | {"counter": counters}


def step(
    made, eps, token, position, cache_k, cache_v, w_cos, w_sin, w_embedding, w_norms, w_qkv, w_out, w_gate_up, w_down,
    w_head,
):  # fmt: skip
    """The logits [V], in the type of the weights, in a buffer that the next step overwrites. `made`: of `made`."""
    (layers, kv_heads, C, D), (_, H, rows) = cache_k.shape, w_out.shape
    if triton.next_power_of_2(D) != D:
        raise ValueError(f"heads of {D} channels: this kernel needs a power of two")
    G, P = rows // D // kv_heads, programs(token.device)
    products = shapes(H, w_down.shape[2], rows, w_qkv.shape[1], len(w_head), P, 8 * w_head.itemsize)
    one[(P,)](
        token, position, cache_k, cache_v, w_cos, w_sin, w_embedding, w_norms, w_qkv, w_out, w_gate_up, w_down, w_head,
        *(made[name] for name in ("x", "qkv", "y", "inner", "logits", "sums", "stats", "counter")), C, layers,
        **products, KV=kv_heads, G=G, GM=triton.next_power_of_2(G), GP=max(16, triton.next_power_of_2(G)), S=SPLITS,
        D=D, B=KEYS, EPS=eps, num_warps=WARPS, maxnreg=65_536 // (32 * WARPS * PER_SM), launch_cooperative_grid=True,
    )  # fmt: skip
    return made["logits"]
