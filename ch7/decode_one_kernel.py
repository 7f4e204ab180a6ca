"""A step of the model in one kernel, in CUDA C++: `SOURCE`. `compiled` makes it for a model's sizes.

A CTA on each SM. Of its warps WARPS compute; one more asks for their weights. Rows of all matrices are dealt to the
computing warps of all CTAs in turn, and each warp has a ring of SLOTS pieces in shared memory, through which its rows
come in the order of their use. Weights depend on nothing, so the ring fills also while the warps wait for a vector.

Vectors go from CTA to CTA as words: an element and a tag, the number of the layer since the first step, in one store.
Who needs a vector reads its words until all have the tag. So there is no barrier of all CTAs, and no flag beside the
data. A word is written again only after everybody has read it: before that its writer has read a whole vector, to
which each CTA gave a row after it had read the word. This holds if each CTA has rows in each product (`grid`).
"""

import cupy
import torch
from decode_one_parts import PARTS

WARPS = 16  # of a CTA, that compute
CHUNK = 2048  # bytes of a piece of a row; a warp has as many in its ring as fit
MOST_SHARES = 8  # CTAs that share the keys of a head

SOURCE = (
    PARTS
    + r"""
struct Softmax {  // of some keys, for UNIT channels: the largest score, the sum of weights, the weighted sum of values
    float top = -1e30f, total = 0, sum[UNIT] = {};
    __device__ void add(float score, const float *v) {
        const float best = fmaxf(top, score), old = __expf(top - best), p = __expf(score - best);
        top = best, total = total * old + p;
        #pragma unroll
        for (int j = 0; j < UNIT; j++) sum[j] = sum[j] * old + p * v[j];
    }
    __device__ void merge(int o) {  // with the lane `o` away
        const float other = __shfl_xor_sync(~0u, top, o), best = fmaxf(top, other);
        const float a = __expf(top - best), b = __expf(other - best);
        total = a * total + b * __shfl_xor_sync(~0u, total, o), top = best;
        #pragma unroll
        for (int j = 0; j < UNIT; j++) sum[j] = a * sum[j] + b * __shfl_xor_sync(~0u, sum[j], o);
    }
};

struct Keys {  // of which each thread has BATCH parts, and of the values
    const uint4 *k, *v; int first, end; uint4 ks[BATCH], vs[BATCH];
    __device__ void load(int at) {
        #pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const int key = at + i * KEYS + threadIdx.x / LANES;
            const uint4 zero = {0, 0, 0, 0};
            ks[i] = key < end ? k[(u64)key * LANES + threadIdx.x % LANES] : zero;
            vs[i] = key < end ? v[(u64)key * LANES + threadIdx.x % LANES] : zero;
        }
    }
};
__device__ Keys share(const Arguments &p, int layer, int item, int position) {  // item: (head, share)
    const int length = (position + SHARES - 1) / SHARES, s = item % SHARES, kv = item / SHARES / (HEADS / KV);
    const u64 rows = ((u64)layer * KV + kv) * CONTEXT * D;
    Keys keys = {(const uint4 *)(p.cache_k + rows), (const uint4 *)(p.cache_v + rows), min(s * length, position)};
    keys.end = min(keys.first + length, position);
    return keys;
}
__device__ void turn(float *v, const float *cos, const float *sin) {  // the rotary embedding
    const bool low = threadIdx.x % LANES < LANES / 2;
    #pragma unroll
    for (int j = 0; j < UNIT; j++) {
        const float other = __shfl_xor_sync(~0u, v[j], LANES / 2);
        v[j] = v[j] * cos[j] + (low ? -other : other) * sin[j];
    }
}
__device__ float product(const float *q, const float *k) {
    float sum = 0;
    #pragma unroll
    for (int j = 0; j < UNIT; j++) sum += q[j] * k[j];
    #pragma unroll
    for (int o = LANES / 2; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    return sum;
}

__device__ void attend(const Arguments &p, int layer, int item, int position, u32 tag, Shared &s) {
    const int head = item / SHARES, kv = head / (HEADS / KV), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int d = threadIdx.x % LANES * UNIT;
    const float *cos = s.cos + d % (D / 2), *sin = s.sin + d % (D / 2);
    float q[UNIT], k[UNIT], v[UNIT];
    Keys keys = share(p, layer, item, position);
    keys.load(keys.first);  // they do not wait for this layer
    fetch_unit(p.qkv_words + head * D + d, tag, q);
    turn(q, cos, sin);
    #pragma unroll
    for (int j = 0; j < UNIT; j++) q[j] *= rsqrtf((float)D);
    Softmax part;
    if (item % SHARES == 0 && warp == 0) {  // the first share has the new key
        fetch_unit(p.qkv_words + QUERIES + kv * D + d, tag, k);
        fetch_unit(p.qkv_words + QUERIES + (KV + kv) * D + d, tag, v);
        turn(k, cos, sin);
        const float score = product(q, k);
        if (lane < LANES) part.add(score, v);
        if (lane < LANES && head % (HEADS / KV) == 0) {
            const u64 row = (((u64)layer * KV + kv) * CONTEXT + position) * D + d;
            #pragma unroll
            for (int j = 0; j < UNIT; j++) p.cache_k[row + j] = narrow(k[j]), p.cache_v[row + j] = narrow(v[j]);
        }
    }
    for (int at = keys.first; at < keys.end; at += KEYS * BATCH) {
        #pragma unroll
        for (int i = 0; i < BATCH; i++) {
            unpack(keys.ks[i], k), unpack(keys.vs[i], v);
            const float score = product(q, k);
            if (at + i * KEYS + (int)threadIdx.x / LANES < keys.end) part.add(score, v);
        }
        if (at + KEYS * BATCH < keys.end) keys.load(at + KEYS * BATCH);
    }
    #pragma unroll
    for (int o = LANES; o < 32; o <<= 1) part.merge(o);
    #pragma unroll
    for (int j = 0; j < UNIT; j++)
        if (lane < LANES) s.sums[warp][d + j] = part.sum[j];
    if (lane == 0) s.tops[warp] = part.top, s.totals[warp] = part.total;
    sync();
    float top = -1e30f, total = 0, sum = 0;
    for (int i = 0; i < WARPS; i++) top = fmaxf(top, s.tops[i]);
    for (int i = 0; i < WARPS; i++) total += s.totals[i] * __expf(s.tops[i] - top);
    for (int c = threadIdx.x; c < D; c += THREADS, sum = 0) {
        for (int i = 0; i < WARPS; i++) sum += s.sums[i][c] * __expf(s.tops[i] - top);
        put(p.parts + item * D + c, packed(total == 0 ? 0.f : sum / total, tag));
    }
    if (threadIdx.x == 0) put(p.lse + item, (u64)__float_as_uint(top + __logf(total)) << 32 | tag);
}
// to = attention of all heads, from their shares
__device__ void merge(const Arguments &p, u32 tag, T *to) {
    for (int at = threadIdx.x * WORDS; at < PAD(QUERIES); at += THREADS * WORDS) {
        const int head = at / D, d = at % D;
        Words w[SHARES]; u64 lse[SHARES]; float top = -1e30f, total = 0, sum[WORDS] = {};
        #pragma unroll
        for (int i = 0; i < SHARES; i++) {
            w[i] = look_16(p.parts + (head * SHARES + i) * D + d);
            lse[i] = look(p.lse + head * SHARES + i);
        }
        #pragma unroll
        for (int i = 0; i < SHARES; i++) {
            w[i] = arrived(w[i], p.parts + (head * SHARES + i) * D + d, tag, WORDS);
            while ((u32)lse[i] != tag) lse[i] = look(p.lse + head * SHARES + i);
            top = fmaxf(top, __uint_as_float(lse[i] >> 32));
        }
        #pragma unroll
        for (int i = 0; i < SHARES; i++) {
            const float weight = __expf(__uint_as_float(lse[i] >> 32) - top);
            total += weight;
            #pragma unroll
            for (int j = 0; j < WORDS; j++) sum[j] += weight * value(word(w[i], j));
        }
        #pragma unroll
        for (int j = 0; j < WORDS; j++) to[at + j] = narrow(sum[j] / total);
    }
    sync();
}
extern "C" __global__ void __launch_bounds__(THREADS + 32, 1) decode_step(
    const long long *token, const long long *position_, T *cache_k, T *cache_v, const float *cos, const float *sin,
    const T *embedding, const T *norms, const char *qkv, const char *out, const char *gate_up, const char *down,
    const char *head, Word *words, T *logits) {
    static_assert(WARPS * SLOTS * CHUNK + sizeof(Shared) <= SHARED_MEM, "more shared memory than the host asks for");
    Word *x_mid = words + PAD(H), *qkv_words = x_mid + PAD(H), *inner = qkv_words + QKV, *parts = inner + PAD(F);
    u64 *lse = (u64 *)(parts + HEADS * SHARES * D);
    u32 *steps = (u32 *)(lse + HEADS * SHARES);
    const Arguments p = {cache_k, cache_v, qkv, out, gate_up, down, head, qkv_words, parts, lse};
    extern __shared__ __align__(128) char memory[];
    Shared &s = *(Shared *)(memory + WARPS * SLOTS * CHUNK);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i < WARPS * SLOTS; i += THREADS + 32)
        bar_init(shared_address(s.full[0] + i)), bar_init(shared_address(s.empty[0] + i));
    for (int i = threadIdx.x; i < D / 2; i += THREADS + 32)
        s.cos[i] = cos[*position_ * (D / 2) + i], s.sin[i] = sin[*position_ * (D / 2) + i];
    bars_ready();
    __syncthreads();
    if (warp == WARPS) return ask(p, memory, s);
    Ring ring = {memory + warp * SLOTS * CHUNK, shared_address(s.full[warp]), shared_address(s.empty[warp])};
    const int position = *position_;
    const u32 begin = *(volatile u32 *)steps + 1;
    const T *row_of_token = embedding + *token * H;
    const bool attends = blockIdx.x < HEADS * SHARES;

    auto prefetch_layer = [&](int layer) {  // what this CTA reads of a layer beside the weights
        if (blockIdx.x == CTAS - 1) prefetch_all(norms + 2 * layer * H, norms + (2 * layer + 3) * H);
        if (!attends || blockIdx.x / SHARES % (HEADS / KV)) return;  // one head of a group
        const Keys keys = share(p, layer, blockIdx.x, position);
        prefetch_all(keys.k + keys.first * LANES, keys.k + keys.end * LANES);
        prefetch_all(keys.v + keys.first * LANES, keys.v + keys.end * LANES);
    };
    auto keep = [&](Word *to, int i, int row, float x, u32 tag) {  // a new element of x
        if (lane) return;
        s.x[i][warp] = x;
        put(to + row, packed(x, tag));
    };
    each_row(H, ROT_OUT, [&](int i, int row) { keep(words, i, row, wide(row_of_token[row]), begin); });
    prefetch_layer(0);
    for (int layer = 0; layer < L; layer++) {
        const u32 tag = begin + layer + 1;
        norm(words, tag - 1, norms + 2 * layer * H, s.a, s);
        each_row(QKV, 0, [&](int, int row) {
            const float y = ring.rows<1, H>(s.a).row(0);
            if (lane == 0) put(qkv_words + row, packed(y, tag));
        });
        for (int item = blockIdx.x; item < HEADS * SHARES; item += CTAS) {
            if (item >= CTAS) sync();  // the sums of the item before have been read
            attend(p, layer, item, position, tag, s);
        }
        if (layer + 1 < L) prefetch_layer(layer + 1);
        merge(p, tag, s.b);
        each_row(H, ROT_OUT, [&](int i, int row) {
            const float y = ring.rows<1, QUERIES>(s.b).row(0);
            keep(x_mid, i, row, s.x[i][warp] + y, tag);
        });
        norm(x_mid, tag, norms + (2 * layer + 1) * H, s.a, s);
        each_row(F, ROT_GATE, [&](int, int row) {
            const Dot dot = ring.rows<2, H>(s.a);
            const float gate = dot.row(0), up = dot.row(1);
            if (lane == 0) put(inner + row, packed(gate / (1 + __expf(-gate)) * up, tag));
        });
        fetch<F>(inner, tag, [&](int, int at, float e) { s.b[at] = narrow(e); });
        sync();
        each_row(H, ROT_OUT, [&](int i, int row) {
            const float y = ring.rows<1, F>(s.b).row(0);
            keep(words, i, row, s.x[i][warp] + y, tag);
        });
    }
    norm(words, begin + L, norms + 2 * L * H, s.a, s);
    each_row(V, 0, [&](int, int row) {
        const float y = ring.rows<1, H>(s.a).row(0);
        if (lane == 0) logits[row] = narrow(y);
    });
    if (blockIdx.x == 0 && threadIdx.x == 0) *steps = begin + L;  // all CTAs have read it: each gave rows since
}
"""
)


def sizes_of(cache_k, eps, w_norms, w_out, w_down, w_head, gpu):
    """The constants of the kernel for a model on a GPU, but for SLOTS."""
    (layers, kv_heads, context, width), (_, hidden, queries) = cache_k.shape, w_out.shape
    if width.bit_count() != 1 or not 32 <= width * cache_k.element_size() <= 512:
        raise ValueError(f"heads of {width} channels: this kernel needs a power of two, of 32 to 512 bytes")
    inner, heads = w_down.shape[2], queries // width
    ctas = min(gpu.multi_processor_count, hidden, inner)  # each has rows in every product: words rely on it
    half = {torch.bfloat16: {"HALF": "bf16"}, torch.float16: {"HALF": "f16"}, torch.float32: {}}[cache_k.dtype]
    return half | {
        "H": hidden, "L": layers, "HEADS": heads, "KV": kv_heads, "D": width, "F": inner, "V": len(w_head),
        "CONTEXT": context, "CTAS": ctas, "SHARES": max(min(ctas // heads, MOST_SHARES), 1), "WARPS": WARPS,
        "CHUNK": CHUNK, "EPS": f"{eps}f",
    }  # fmt: skip


def aligned(w):
    """W with rows that begin at multiples of 16 bytes, as bulk copies need them: W itself, or a copy with zeros."""
    short = -w.shape[-1] % (16 // w.element_size())
    return torch.nn.functional.pad(w, (0, short)) if short or w.data_ptr() % 16 else w


def prepared(cache_k, w_cos, w_sin, eps, w_embedding, w_norms, w_qkv, w_out, w_gate_up, w_down, w_head):
    """The compiled kernel, its launch, and what it reads and writes beside the inputs that change."""
    gpu = torch.cuda.get_device_properties(cache_k.device)
    sizes = sizes_of(cache_k, eps, w_norms, w_out, w_down, w_head, gpu)
    size, heads, shares = cache_k.element_size(), sizes["HEADS"], sizes["SHARES"]
    padded = [-(-n * size // 16) * 16 for n in (sizes["H"], w_out.shape[2], sizes["F"])]  # bytes of a vector
    rows = -(-sizes["H"] // (sizes["CTAS"] * WARPS))  # of x, that a warp keeps
    fixed = padded[0] + max(padded[1:]) + 4 * (WARPS * (sizes["D"] + 3 + rows) + sizes["D"]) + 128
    slots = (gpu.shared_memory_per_block_optin - fixed) // (WARPS * (CHUNK + 16))
    if slots < 2:
        raise ValueError(f"{gpu.shared_memory_per_block_optin} bytes of shared memory: no room for two pieces a warp")
    shared_mem = fixed + slots * WARPS * (CHUNK + 16)
    constants = {**sizes, "SLOTS": slots, "SHARED_MEM": shared_mem}
    options = tuple(f"-D{name}={value}" for name, value in constants.items())
    kernel = cupy.RawKernel(SOURCE, "decode_step", options, enable_cooperative_groups=True)  # all CTAs at once, or none
    kernel.max_dynamic_shared_size_bytes = shared_mem
    elements = (2 * padded[0] + padded[2]) // size + w_qkv.shape[1] + heads * shares * sizes["D"]
    words = torch.zeros(elements * max(2 * size, 4) + heads * shares * 8 + 16, dtype=torch.uint8, device=w_qkv.device)
    weights = [aligned(w) for w in (w_qkv, w_out, w_gate_up, w_down, w_head)]
    logits = w_head.new_empty(len(w_head))
    return {
        "kernel": kernel, "launch": ((sizes["CTAS"],), (32 * (WARPS + 1),)), "shared_mem": shared_mem,
        "constant": (w_cos, w_sin, w_embedding, w_norms, *weights, words, logits), "logits": logits,
    }  # fmt: skip
