"""What `decode_one_kernel.py` is made of, in CUDA C++: words, products of rows, the ring of weights, the norm."""

PARTS = r"""typedef unsigned u32; typedef unsigned long long u64;
#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

#ifdef HALF  // bf16 or f16: the letters in the names of instructions
typedef unsigned short T; typedef u32 Word;
__device__ float wide(T v) { float f; asm("cvt.f32." QUOTE(HALF) " %0, %1;" : "=f"(f) : "h"(v)); return f; }
__device__ T narrow(float f) { T v; asm("cvt.rn." QUOTE(HALF) ".f32 %0, %1;" : "=h"(v) : "f"(f)); return v; }
__device__ Word packed(float v, u32 tag) { return (u32)narrow(v) << 16 | (tag & 0xffff); }
__device__ float value(Word w) { return wide(w >> 16); }
__device__ bool has(Word w, u32 tag) { return !((w ^ tag) & 0xffff); }
__device__ void mma(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." QUOTE(HALF) "." QUOTE(HALF) ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#else
typedef float T; typedef u64 Word;
__device__ float wide(T v) { return v; }
__device__ T narrow(float f) { return f; }
__device__ Word packed(float v, u32 tag) { return (u64)__float_as_uint(v) << 32 | tag; }
__device__ float value(Word w) { return __uint_as_float(w >> 32); }
__device__ bool has(Word w, u32 tag) { return (u32)w == tag; }
#endif

struct Words { u64 a, b; };  // 16 bytes of words
__device__ Words look_16(const void *at) {
    Words w;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(w.a), "=l"(w.b) : "l"(at) : "memory");
    return w;
}
__device__ u64 look(const u64 *at) { return *(const volatile u64 *)at; }
template <class W> __device__ void put(W *at, W w) { *(volatile W *)at = w; }
__device__ void prefetch(const void *at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }
__device__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void bar_init(u32 bar) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory"); }
__device__ void bar_arrive(u32 bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ bool bar_done(u32 bar, u32 parity) {
    u32 yes;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(yes) : "r"(bar), "r"(parity) : "memory");
    return yes;
}
__device__ void bar_wait(u32 bar, u32 parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }"
                 ::"r"(bar), "r"(parity) : "memory");
}
__device__ void bars_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ u64 read_once() {  // weights make room in L2 for the words and the cache
    u64 policy; asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy)); return policy;
}
__device__ void bulk_copy(u32 to, const void *from, u32 bytes, u32 bar, u64 policy) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(to), "l"(from), "r"(bytes), "r"(bar), "l"(policy) : "memory");
}
#define THREADS (32 * WARPS)
__device__ void sync() { asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory"); }  // of those that compute
// end of instructions

#define UNIT (16 / (int)sizeof(T))  // elements in 16 bytes
#define WORDS (16 / (int)sizeof(Word))
#define PAD(n) (((n) + UNIT - 1) / UNIT * UNIT)  // rows of weights are as long
#define BYTES(n) (PAD(n) * (int)sizeof(T))
#define QUERIES (HEADS * D)
#define QKV (QUERIES + 2 * KV * D)
#define WORKERS (CTAS * WARPS)
#define ROT_OUT (QKV % WORKERS)  // a product begins at the worker at which the one before it ended;
#define ROT_GATE ((QKV + H) % WORKERS)  // but both that add to x at the same, which keeps its rows of x
#define LANES (D / UNIT)  // that share a key
#define KEYS (32 / LANES * WARPS)  // that a CTA loads with one instruction
#define BATCH 4  // such loads at a time

struct Arguments {
    T *cache_k, *cache_v; const char *qkv, *out, *gate_up, *down, *head;
    Word *qkv_words, *parts; u64 *lse;
};
struct Shared {
    T a[PAD(H)], b[PAD(QUERIES > F ? QUERIES : F)];  // the vector of a product, in turns
    float sums[WARPS][D], tops[WARPS], totals[WARPS], squares[WARPS], x[(H + WORKERS - 1) / WORKERS][WARPS];
    float cos[D / 2], sin[D / 2];
    u64 full[WARPS][SLOTS], empty[WARPS][SLOTS];
};

__device__ float warp_sum(float v) {
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}
__device__ Word word(Words w, int j) {
    return sizeof(Word) == 8 ? (Word)(j ? w.b : w.a) : (Word)((j < 2 ? w.a : w.b) >> j % 2 * 32);
}
__device__ Words arrived(Words w, const Word *at, u32 tag, int count) {  // reads again until `count` words have the tag
    while (true) {
        bool all = true;
        #pragma unroll
        for (int j = 0; j < WORDS; j++) all &= j >= count || has(word(w, j), tag);
        if (all) return w;
        w = look_16(at);
    }
}
template <int N, class Use> __device__ void fetch(const Word *from, u32 tag, Use use) {  // use(a round, place, value)
    constexpr int ROUND = THREADS * WORDS, ROUNDS = (PAD(N) + ROUND - 1) / ROUND;
    const int mine = threadIdx.x * WORDS;
    Words w[ROUNDS];
    #pragma unroll
    for (int i = 0; i < ROUNDS; i++)
        if (mine + i * ROUND < PAD(N)) w[i] = look_16(from + mine + i * ROUND);
    #pragma unroll
    for (int i = 0; i < ROUNDS; i++) {
        const int at = mine + i * ROUND;
        if (at >= PAD(N)) continue;
        w[i] = arrived(w[i], from + at, tag, N - at);
        #pragma unroll
        for (int j = 0; j < WORDS; j++) use(i * WORDS + j, at + j, at + j < N ? value(word(w[i], j)) : 0.f);
    }
}
__device__ void fetch_unit(const Word *from, u32 tag, float *v) {
    Words w[2] = {look_16(from), look_16(from + WORDS)};  // UNIT elements are 32 bytes of words
    #pragma unroll
    for (int i = 0; i < 2; i++) {
        w[i] = arrived(w[i], from + i * WORDS, tag, WORDS);
        #pragma unroll
        for (int j = 0; j < WORDS; j++) v[i * WORDS + j] = value(word(w[i], j));
    }
}
__device__ void unpack(uint4 u, float *v) {
    #pragma unroll
    for (int j = 0; j < UNIT; j++) v[j] = wide(((const T *)&u)[j]);
}
__device__ void prefetch_all(const void *from, const void *end) {
    const char *at = (const char *)from + 128 * threadIdx.x;
    for (; at < (const char *)end; at += 128 * THREADS) prefetch(at);
}

// Products of one or two rows of W with x. A lane has the same places of each. Tensor cores multiply them: 16 bytes of
// lane 4 g + t stand in rows g and g + 8 of one factor and in column g of the other, so that the sums wanted are those
// in places (g, g) and (g + 8, g). The others mix different places.
struct Dot {
    float d[2][4] = {};
    __device__ void add(uint4 u, uint4 v, uint4 x) {
#ifdef HALF
        mma(d[0], u.x, v.x, u.y, v.y, x.x, x.y);
        mma(d[1], u.z, v.z, u.w, v.w, x.z, x.w);
#else
        const float *p = (const float *)&u, *q = (const float *)&v, *y = (const float *)&x;
        #pragma unroll
        for (int j = 0; j < 4; j++) d[0][j] += p[j] * y[j], d[1][j] += q[j] * y[j];
#endif
    }
    __device__ float row(int n) const {
#ifdef HALF
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, c = 2 * n + g % 2;
        return warp_sum(g / 2 == t ? (c & 2 ? c & 1 ? d[0][3] + d[1][3] : d[0][2] + d[1][2]
                                            : c & 1 ? d[0][1] + d[1][1] : d[0][0] + d[1][0]) : 0.f);
#else
        return warp_sum((d[n][0] + d[n][1]) + (d[n][2] + d[n][3]));
#endif
    }
};

struct Ring {  // what a warp reads
    const char *data; u32 full, empty; int slot; u32 parity;
    __device__ void next() { if (++slot == SLOTS) slot = 0, parity ^= 1; }
    template <int N, int K> __device__ Dot rows(const T *x) {  // N rows, piece by piece in turns
        Dot dot;
        const int lane = threadIdx.x % 32;
        #pragma unroll
        for (int from = 0; from < BYTES(K); from += CHUNK) {
            const int count = (BYTES(K) - from < CHUNK ? BYTES(K) - from : CHUNK) / 16;
            const uint4 *y = (const uint4 *)((const char *)x + from), *w[2], zero = {0, 0, 0, 0};
            u32 done[N];
            #pragma unroll
            for (int n = 0; n < N; n++) {
                bar_wait(full + 8 * slot, parity);
                w[n] = (const uint4 *)(data + slot * CHUNK), done[n] = empty + 8 * slot;
                next();
            }
            #pragma unroll
            for (int i = 0; i < count; i += 32) {
                const bool in = i + lane < count;
                dot.add(in ? w[0][i + lane] : zero, N == 2 && in ? w[N - 1][i + lane] : zero, in ? y[i + lane] : zero);
            }
            __syncwarp();
            if (lane == 0)
                for (int n = 0; n < N; n++) bar_arrive(done[n]);
        }
        return dot;
    }
};

// A lane of the last warp asks for the weights of warp `lane`, in the order in which that one reads them.
__device__ void ask(const Arguments &p, char *ring, Shared &s) {
    const int lane = threadIdx.x % 32, worker = lane * CTAS + blockIdx.x;
    if (lane >= WARPS) return;
    const u32 data = shared_address(ring + lane * SLOTS * CHUNK);
    const u32 full = shared_address(s.full[lane]), empty = shared_address(s.empty[lane]);
    const u64 policy = read_once();
    int layer = 0, phase = 0, row = worker, from = 0, second = 0, slot = 0;
    u32 parity = 1;
    while (phase < 5) {  // lanes wait here together, none in a loop of its own
        const int rows = phase == 0 ? QKV : phase == 2 ? F : phase == 4 ? V : H;
        const int bytes = phase == 1 ? BYTES(QUERIES) : phase == 3 ? BYTES(F) : BYTES(H);
        if (row >= rows) {
            if (phase == 4) phase = 5;
            else if (phase == 3 && ++layer < L) phase = 0;
            else phase++;
            const int rot = phase == 2 ? ROT_GATE : phase % 2 ? ROT_OUT : 0;
            row = worker < rot ? worker + WORKERS - rot : worker - rot;
            continue;
        }
        if (!bar_done(empty + 8 * slot, parity)) continue;
        const char *w = phase == 0 ? p.qkv : phase == 1 ? p.out : phase == 2 ? p.gate_up : phase == 3 ? p.down : p.head;
        const u64 first = phase == 2 ? (u64)layer * 2 * F + second * F : phase == 4 ? 0 : (u64)layer * rows;
        const char *at = w + (first + row) * bytes + from;
        bulk_copy(data + slot * CHUNK, at, min(CHUNK, bytes - from), full + 8 * slot, policy);
        if (++slot == SLOTS) slot = 0, parity ^= 1;
        if (phase == 2 && (second ^= 1)) continue;  // the same piece of the other matrix
        from += CHUNK;
        if (from >= bytes) from = 0, row += WORKERS;
    }
}

template <class Each> __device__ void each_row(int n, int rot, Each each) {  // each(round, row) of this warp
    const int worker = threadIdx.x / 32 * CTAS + blockIdx.x;
    int i = 0;
    for (int row = (worker + WORKERS - rot) % WORKERS; row < n; row += WORKERS) each(i++, row);
}

// to = RMSNorm(x) * gain
__device__ void norm(const Word *x, u32 tag, const T *gain, T *to, Shared &s) {
    constexpr int MOST = (PAD(H) + THREADS * WORDS - 1) / (THREADS * WORDS) * WORDS;
    const int lane = threadIdx.x % 32;
    float v[MOST], g[MOST], squares = 0;
    #pragma unroll
    for (int i = 0; i < MOST; i++) {
        const int at = (threadIdx.x + i / WORDS * THREADS) * WORDS + i % WORDS;
        g[i] = at < H ? wide(gain[at]) : 0.f;
    }
    fetch<H>(x, tag, [&](int i, int at, float e) { v[i] = e, squares += e * e; });
    squares = warp_sum(squares);
    if (lane == 0) s.squares[threadIdx.x / 32] = squares;
    sync();
    const float rstd = rsqrtf(warp_sum(lane < WARPS ? s.squares[lane] : 0.f) / H + EPS);
    #pragma unroll
    for (int i = 0; i < MOST; i++) {
        const int at = (threadIdx.x + i / WORDS * THREADS) * WORDS + i % WORDS;
        if (at < PAD(H)) to[at] = at < H ? narrow(v[i] * rstd * g[i]) : narrow(0.f);
    }
    sync();
}
"""
