"""One CUDA C++ kernel for a step of the model: attention, the step itself, and how it is launched."""

import cupy
import numpy
import torch
from decode_one_parts import PARTS

WARPS = 16  # of a CTA; one CTA an SM
STEP = r"""
constexpr int AHEAD = at_most(32, 128 / (E * BYTES));  // rows of values on the way
struct __align__(E * BYTES) Piece { T x[E]; };  // of a row, a lane's
struct Share {  // the old rows of the cache that a warp attends to: lane j has key first + j of a block
    int head, query, part, position, first, end;
    const T *keys, *values;
    __device__ Share(int position_, const T* k, const T* v) : position(position_) {
        int warp = threadIdx.x / 32, block = warp / G, share = parts(position, PARTS);
        head = blockIdx.x / SPLITS, query = head * G + warp % G;
        part = head < KV && block < BLOCKS ? (int)blockIdx.x % SPLITS * BLOCKS + block : PARTS;  // PARTS: none
        first = part * share, end = part < PARTS ? at_most(first + share, position) : 0;
        keys = k + (long long)at_most(head, KV - 1) * C * D, values = v + (long long)at_most(head, KV - 1) * C * D;
    }
    __device__ const T* row(const T* array, int key) const { return array + (long long)at_most(key, end - 1) * D; }
};

// The rotary embedding of query, key; the value as it is: to [3 D] of shared memory. Without `is_new` the query alone.
__device__ void rotate(float* to, const u64* words, u32 tag, const Share& share, const float* cosine, const float* sine,
                       bool is_new) {
    constexpr int n = parts(D, 64);
    const u64* from[6 * n];
    float x[6 * n];
    const int rows[] = {share.query, NH + share.head, NH + KV + share.head};
    #pragma unroll
    for (int i = 0; i < 6 * n; i++) {
        int pair = threadIdx.x % 32 + i / 6 * 32, which = i % 6 / 2;
        bool is_asked = pair < D / 2 && (which == 0 || is_new);
        from[i] = is_asked ? words + PROJECTED + rows[which] * D + i % 2 * (D / 2) + pair : nullptr;
    }
    receive(from, tag, x);
    #pragma unroll
    for (int i = 0; i < 6 * n; i += 2) {
        int pair = threadIdx.x % 32 + i / 6 * 32, which = i % 6 / 2;
        if (pair >= D / 2) continue;
        float c = which < 2 ? cosine[pair] : 1.f, s = which < 2 ? sine[pair] : 0.f;
        float scale = which ? 1.f : rsqrtf((float)D);
        to[which * D + pair] = (x[i] * c - x[i + 1] * s) * scale;
        to[which * D + D / 2 + pair] = (x[i + 1] * c + x[i] * s) * scale;
    }
    __syncwarp();
}

struct Softmax { float top = -1e30f, total = 0, sums[E] = {}; };  // finite: -inf - -inf is NaN

__device__ void attend_block(const Share& share, int start, const uint4* key, const float* q, Softmax& a) {
    int lane = threadIdx.x % 32;
    Piece value[AHEAD];
    #pragma unroll
    for (int j = 0; j < AHEAD; j++) value[j] = ((const Piece*)share.row(share.values, start + j))[lane];
    float score = 0;
    #pragma unroll
    for (int i = 0; i < D * BYTES / 16; i++)
        for (int j = 0; j < 16 / BYTES; j++) score += wide(((const T*)&key[i])[j]) * q[i * (16 / BYTES) + j];
    if (start + lane >= share.end) score = -1.f / 0.f;
    float top = fmaxf(a.top, warp_max(score)), p = __expf(score - top), rescale = __expf(a.top - top);
    a.top = top, a.total = a.total * rescale + warp_sum(p);
    for (int e = 0; e < E; e++) a.sums[e] *= rescale;
    #pragma unroll
    for (int j = 0; j < 32; j++) {
        float pj = __shfl_sync(~0u, p, j);
        for (int e = 0; e < E; e++) a.sums[e] += pj * wide(value[j % AHEAD].x[e]);
        if (j + AHEAD < 32) value[j % AHEAD] = ((const Piece*)share.row(share.values, start + j + AHEAD))[lane];
    }
}

__device__ void attend(Kept& kept, u64* words, u32 tag, const Share& share, T* k, T* v, const float* cosine,
                       const float* sine) {
    int lane = threadIdx.x % 32;
    float* q = kept.q[threadIdx.x / 32];
    uint4 key[D * BYTES / 16];
    Softmax a;
    for (int start = share.first; start == share.first || start < share.end; start += 32) {
        if (start < share.end)
            #pragma unroll
            for (int i = 0; i < D * BYTES / 16; i++) key[i] = ((const uint4*)share.row(share.keys, start + lane))[i];
        if (start == share.first) {
            rotate(q, words, tag, share, cosine, sine, share.part == 0);
            if (share.part == 0) {  // begins with the new token, and keeps it
                float product = 0;
                for (int d = lane; d < D; d += 32) product += q[d] * q[D + d];
                a.top = warp_sum(product), a.total = 1;
                for (int e = 0; e < E; e++) a.sums[e] = q[2 * D + lane * E + e];
                for (int d = lane; d < D && share.query % G == 0; d += 32) {
                    k[((long long)share.head * C + share.position) * D + d] = narrow(q[D + d]);
                    v[((long long)share.head * C + share.position) * D + d] = narrow(q[2 * D + d]);
                }
            }
        }
        if (start < share.end) attend_block(share, start, key, q, a);
    }
    u64* to = words + SUMS + (share.query * PARTS + share.part) * (D + 2);
    for (int e = 0; e < E; e++) send(to + lane * E + e, tag, a.sums[e]);
    if (lane < 2) send(to + D + lane, tag, lane ? a.total : a.top);
}

__device__ void merge(u64* words, u32 tag, int head) {  // a CTA merges some channels of its head's queries, a warp each
    constexpr int OWN = parts(G * D, SPLITS), n = parts(PARTS, 32);
    int lane = threadIdx.x % 32, end = at_most((blockIdx.x % SPLITS + 1) * OWN, G * D);
    for (int o = blockIdx.x % SPLITS * OWN + threadIdx.x / 32; o < end; o += WARPS) {
        const u64* from[3 * n];
        float x[3 * n], top = -1e30f, total = 0, sum = 0;
        for (int i = 0; i < n; i++) {
            const u64* part = words + SUMS + ((head * G + o / D) * PARTS + i * 32 + lane) * (D + 2);
            bool is_one = i * 32 + lane < PARTS;
            from[3 * i] = is_one ? part + o % D : nullptr;
            from[3 * i + 1] = is_one ? part + D : nullptr, from[3 * i + 2] = is_one ? part + D + 1 : nullptr;
        }
        receive(from, tag, x);
        for (int i = 0; i < n; i++) top = fmaxf(top, from[3 * i] ? x[3 * i + 1] : -1e30f);
        top = warp_max(top);
        for (int i = 0; i < n; i++) {
            float share = __expf(x[3 * i + 1] - top);
            sum += from[3 * i] ? share * x[3 * i] : 0.f, total += from[3 * i] ? share * x[3 * i + 2] : 0.f;
        }
        sum = warp_sum(sum), total = warp_sum(total);
        if (lane == 0) send(words + Y + head * G * D + o, tag, sum / total);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) step(
    const long long* token, const long long* position, T* cache_k, T* cache_v, const float* cosine, const float* sine,
    const T* embedding, const T* norms, const T* w_qkv, const T* w_out, const T* w_gate_up, const T* w_down,
    const T* w_head, u64* words, u32* epoch, T* logits) {
    extern __shared__ __align__(128) unsigned char bytes[];
    Shared& shared = *(Shared*)bytes;
    Kept& kept = shared.kept;
    Ring ring(shared);
    constexpr long long S_QKV = (long long)N_(QKV) * H, S_OUT = (long long)H * ROWS, S_GATE_UP = 2LL * F * H,
                        S_DOWN = (long long)H * F, S_CACHE = (long long)KV * C * D;
    ring.list<QKV>(w_qkv, S_QKV), ring.list<OUT>(w_out, S_OUT), ring.list<GATE_UP>(w_gate_up, S_GATE_UP);
    ring.list<DOWN>(w_down, S_DOWN), ring.list<HEAD>(w_head, (long long)ALL * H);
    if (ring.lane == 0) {
        for (int s = 0; s < SLOTS; s++) init(&shared.full[ring.warp][s]);
        show_init();
    }
    __syncwarp();
    for (int s = 0; s < SLOTS; s++) ring.ask(s);
    u32 tag = *epoch;
    int at = (int)*position;
    cosine += at * (D / 2), sine += at * (D / 2);
    float* own = kept.own[ring.warp];  // the residual stays where its rows of OUT and DOWN are
    auto rows = dealt<DOWN>();
    for (int i = ring.lane; i < rows.count; i += 32) {
        own[i] = wide(embedding[*token * H + rows.first + i * ALL]);
        send(words + X + rows.first + i * ALL, tag + 1, own[i]);
    }
    __syncwarp();
    for (int layer = 0; layer < L; layer++) {
        T *k = cache_k + layer * S_CACHE, *v = cache_v + layer * S_CACHE;
        Share share(at, k, v);
        if (share.first < share.end)
            for (int b = 0; b < D; b += 128 / BYTES) {
                prefetch(share.row(share.keys, share.first + ring.lane) + b);
                prefetch(share.row(share.values, share.first + ring.lane) + b);
            }
        tag++;
        auto x = norm(kept, words + X, tag, norms + 2 * layer * H);
        product<QKV>(ring, w_qkv + layer * S_QKV, x,
                     [&](int, int row, float* y) { send(words + PROJECTED + row, tag, y[0]); });
        if (share.part < PARTS) attend(kept, words, tag, share, k, v, cosine, sine);
        if (share.head < KV) merge(words, tag, share.head);
        x = plain<ROWS>(kept, words + Y, tag);
        product<OUT>(ring, w_out + layer * S_OUT, x,
                     [&](int i, int row, float* y) { send(words + X2 + row, tag, own[i] += y[0]); });
        x = norm(kept, words + X2, tag, norms + (2 * layer + 1) * H);
        product<GATE_UP>(ring, w_gate_up + layer * S_GATE_UP, x,
                         [&](int, int row, float* y) {
                             send(words + INNER + row, tag, y[0] / (1 + __expf(-y[0])) * y[1]);
                         });
        x = plain<F>(kept, words + INNER, tag);
        product<DOWN>(ring, w_down + layer * S_DOWN, x,
                      [&](int i, int row, float* y) { send(words + X + row, tag + 1, own[i] += y[0]); });
    }
    auto x = norm(kept, words + X, ++tag, norms + 2 * L * H);
    product<HEAD>(ring, w_head, x, [&](int, int row, float* y) { logits[row] = narrow(y[0]); });
    if (blockIdx.x == 0 && threadIdx.x == 0) *epoch = tag;  // all CTAs have read it: this one has rows of each
}
"""


def constants(eps, cache_k, w_qkv, w_out, w_gate_up, w_down, w_head):
    """The model's sizes, by the kernel's names."""
    (layers, kv_heads, rows, width), (_, hidden, outputs) = cache_k.shape, w_out.shape
    machine = torch.cuda.get_device_properties(cache_k.device)
    products = w_qkv, w_out, w_gate_up, w_down, w_head
    found = {
        "H": hidden, "L": layers, "NH": outputs // width, "KV": kv_heads, "D": width, "F": w_down.shape[2],
        "V": len(w_head), "C": rows, "BYTES": w_qkv.element_size(), "BF16": int(w_qkv.dtype == torch.bfloat16),
        "CTAS": min(machine.multi_processor_count, hidden, w_down.shape[2]),  # each has a row: see `PARTS`
        "WARPS": WARPS, "LIMIT": machine.shared_memory_per_block_optin,
        "BULK": sum((w.data_ptr() % 16 == 0 and w.shape[-1] * w.element_size() % 16 == 0) << i
                    for i, w in enumerate(products)),
    }  # fmt: skip
    splits = min(max(found["CTAS"] // kv_heads, 1), 32)
    group = outputs // width // kv_heads
    blocks = max(min(WARPS // group, -(-rows // (32 * splits))), 1)
    if width not in (32, 64, 128) or group > WARPS or kv_heads > found["CTAS"] or cache_k.data_ptr() % 16:
        raise ValueError(f"heads of {width} channels, {group} for a key: this kernel has 32, 64 or 128 channels, "
                         f"at most {WARPS} heads for a key, and a cache that begins at 16 bytes")  # fmt: skip
    return {**found, "SPLITS": splits, "BLOCKS": blocks, "EPS": f"{eps}f"}


def prepare(eps, cache_k, cache_v, w_cos, w_sin, w_embedding, w_norms, w_qkv, w_out, w_gate_up, w_down, w_head):
    """(A function of token and position that launches a step and gives its logits, what it keeps in memory)."""
    sizes = constants(eps, cache_k, w_qkv, w_out, w_gate_up, w_down, w_head)
    kernel = cupy.RawKernel(PARTS + STEP, "step", tuple(f"-D{name}={value}" for name, value in sizes.items()))
    kernel.max_dynamic_shared_size_bytes = sizes["LIMIT"]
    heads, width, parts = sizes["NH"], sizes["D"], sizes["SPLITS"] * sizes["BLOCKS"]
    count = 2 * sizes["H"] + len(w_qkv[0]) + heads * parts * (width + 2) + heads * width + sizes["F"]
    words = torch.zeros(count, dtype=torch.int64, device=cache_k.device)
    epoch = torch.zeros(1, dtype=torch.int32, device=cache_k.device)
    logits = w_head.new_empty(len(w_head))
    arrays = (cache_k, cache_v, w_cos, w_sin, w_embedding, w_norms, w_qkv, w_out, w_gate_up, w_down, w_head)
    kept = tuple(numpy.uint64(x.data_ptr()) for x in (*arrays, words, epoch, logits))

    def launch(token, position):
        arguments = (numpy.uint64(token.data_ptr()), numpy.uint64(position.data_ptr()), *kept)
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
        # True: a cooperative launch, which the driver refuses unless all CTAs are resident at once
        kernel.kernel((sizes["CTAS"],), (WARPS * 32,), arguments, sizes["LIMIT"], stream, True)
        return logits

    return launch, (words, epoch)  # whoever launches keeps them
