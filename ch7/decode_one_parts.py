"""The parts of `optimized_decode_one.py`'s kernel that know no layer: memory, words, the ring, a product's rows.

Words: a float and, in the upper half of 8 bytes, its layer's tag. 8 bytes arrive together, so who waits for a float
looks until the tag is right: no barrier, no flag, and no order between two stores is needed. A word may be written
anew a layer later: then every CTA has had a row of a product that needs all rows of the one before.

Ring: each warp knows all of its rows of a step, in order. It asks for the next piece of 4 KiB as soon as a slot is
free, also while it waits for x: weights do not depend on anything.
"""

PARTS = r"""
// The machine: what C++ has no word for.
typedef unsigned u32;
typedef unsigned long long u64;
__device__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ u64 peek(const u64* p) {
    u64 word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(p) : "memory");
    return word;
}
__device__ void poke(u64* p, u64 word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
}
__device__ void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
__device__ void init(u64* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void show_init() {  // to the engine that copies
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ void copy(void* to, const void* from, u32 bytes, u64* barrier) {  // the barrier's phase ends with the copy
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier)) : "memory");
}
__device__ void wait(u64* barrier, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
}
#if BYTES == 4
typedef float T;
__device__ float wide(T x) { return x; }
__device__ T narrow(float x) { return x; }
#else
typedef unsigned short T;
__device__ float wide(T x) {
    float y;
    if (BF16) y = __uint_as_float((u32)x << 16);
    else asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
__device__ T narrow(float x) {
    T y;
    if (BF16) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    else asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
#endif
// The step.
constexpr int THREADS = WARPS * 32, ALL = CTAS * WARPS, CHUNK = 4096, G = NH / KV, ROWS = NH * D, E = D / 32;
__device__ constexpr int at_most(int a, int b) { return a < b ? a : b; }
__device__ constexpr int at_least(int a, int b) { return a < b ? b : a; }
__device__ constexpr int parts(int n, int size) { return (n + size - 1) / size; }

// Five products: N rows (or pairs of rows, R = 2) of K weights, dealt to all warps, each product from warp START on.
enum { QKV, OUT, GATE_UP, DOWN, HEAD };
__device__ constexpr int N_(int p) { return p == QKV ? ROWS + 2 * KV * D : p == GATE_UP ? F : p == HEAD ? V : H; }
__device__ constexpr int K_(int p) { return p == OUT ? ROWS : p == DOWN ? F : H; }
__device__ constexpr int R_(int p) { return p == GATE_UP ? 2 : 1; }
__device__ constexpr int START_(int p) {  // OUT and DOWN: the same warp has a row of both
    return p == QKV ? H % ALL : p == GATE_UP ? (H + N_(QKV)) % ALL : 0;
}
__device__ constexpr bool is_bulk(int p) { return BULK >> p & 1; }  // rows begin at multiples of 16 bytes
__device__ constexpr int chunks(int p) { return is_bulk(p) ? parts(K_(p) * BYTES, CHUNK) : 0; }
__device__ constexpr int most(int p) { return parts(N_(p), ALL) * R_(p) * chunks(p); }  // chunks of a warp
constexpr int CHUNKS = most(QKV) + most(OUT) + most(GATE_UP) + most(DOWN) + chunks(HEAD);

// Words from CTA to CTA: a float and, in the upper half, its layer's tag. A reader looks until the tag is right.
// SPLITS CTAs share a head's keys, in each of them BLOCKS warps for each query.
constexpr int PARTS = SPLITS * BLOCKS;
constexpr int X = 0, PROJECTED = X + H, SUMS = PROJECTED + N_(QKV), Y = SUMS + NH * PARTS * (D + 2), X2 = Y + ROWS,
              INNER = X2 + H;

struct Chunk { const char* from; u32 step, bytes; };  // step: to that of the next layer, or the head's next row
struct Kept {
    T normed[parts(H, 8) * 8], plain[parts(at_least(ROWS, F), 8) * 8];
    float q[WARPS][3 * D], own[WARPS][parts(H, ALL)], squares[32];
    Chunk list[WARPS][CHUNKS + 1];
};
constexpr int SLOTS = at_most(16, (LIMIT - (int)sizeof(Kept) - 256) / (WARPS * (CHUNK + 8)));
static_assert(SLOTS >= 2, "a warp needs two slots in shared memory");
struct Shared { uint4 ring[WARPS][SLOTS][CHUNK / 16]; Kept kept; u64 full[WARPS][SLOTS]; };

__device__ float warp_sum(float x) {
    for (int o = 16; o; o /= 2) x += __shfl_xor_sync(~0u, x, o);
    return x;
}
__device__ float warp_max(float x) {
    for (int o = 16; o; o /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, o));
    return x;
}
__device__ void send(u64* to, u32 tag, float x) { poke(to, (u64)tag << 32 | __float_as_uint(x)); }

template <int n>
__device__ void receive(const u64* const (&from)[n], u32 tag, float (&x)[n]) {  // a null pointer gives 0
    if (n > 12) while ((u32)(peek(from[0]) >> 32) != tag);  // do not read many in vain
    bool is_stale;
    do {
        u64 words[n];
        is_stale = false;
        #pragma unroll
        for (int i = 0; i < n; i++) words[i] = from[i] ? peek(from[i]) : (u64)tag << 32;
        #pragma unroll
        for (int i = 0; i < n; i++) {
            is_stale |= (u32)(words[i] >> 32) != tag;
            x[i] = __uint_as_float((u32)words[i]);
        }
    } while (is_stale);
}

template <int K>
__device__ void receive_all(const u64* from, u32 tag, float (&x)[parts(K, THREADS)]) {
    const u64* at[parts(K, THREADS)];
    #pragma unroll
    for (int i = 0; i < parts(K, THREADS); i++) {
        int k = threadIdx.x + i * THREADS;
        at[i] = k < K ? from + k : nullptr;
    }
    receive(at, tag, x);
}

struct Dealt { int first, count; };  // rows first, first + ALL, ...
template <int P>
__device__ Dealt dealt() {
    int warp = threadIdx.x / 32 * CTAS + blockIdx.x - START_(P);
    warp += warp < 0 ? ALL : 0;
    return {warp, warp < N_(P) ? parts(N_(P) - warp, ALL) : 0};
}

struct Ring {  // a warp's: it asks for what comes next as soon as a slot is free, whatever the warp waits for
    Shared& shared;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slot = 0, next = 0, first = 0, end = 0, all = 0, round = 0,
        rounds = L;
    u32 parity = 0;
    __device__ explicit Ring(Shared& s) : shared(s) {}

    template <int P>
    __device__ void list(const T* w, long long step) {  // adds chunks of a layer, or of the head's first row
        Dealt rows = dealt<P>();
        if (P == HEAD) rows.count = rows.count > 0;
        for (int i = 0; i < rows.count; i++)
            for (int c = 0; c < chunks(P); c++)
                for (int r = 0; r < R_(P); r++, all++) {
                    const T* row = w + ((long long)r * N_(P) + rows.first + i * ALL) * K_(P);
                    if (lane == 0)
                        shared.kept.list[warp][all] = {(const char*)row + c * CHUNK, (u32)(step * BYTES),
                                                       (u32)at_most(CHUNK, K_(P) * BYTES - c * CHUNK)};
                }
        if (P != HEAD) end = all;
    }
    __device__ void ask(int into) {
        while (next == end) {
            if (++round < rounds && first < end) next = first;
            else if (end < all) first = end, end = all, round = 0, rounds = dealt<HEAD>().count;
            else return;  // nothing is left
        }
        if (lane == 0) {
            Chunk chunk = shared.kept.list[warp][next];
            copy(shared.ring[warp][into], chunk.from + (u64)round * chunk.step, chunk.bytes, &shared.full[warp][into]);
        }
        next++;
    }
    __device__ const uint4* chunk(int ahead) {  // the next, or the one after it
        int s = slot + ahead, turns = s >= SLOTS;
        s -= turns ? SLOTS : 0;
        wait(&shared.full[warp][s], parity ^ turns);
        return shared.ring[warp][s];
    }
    __device__ void done() {
        __syncwarp();  // all lanes have read it
        ask(slot);
        if (++slot == SLOTS) slot = 0, parity ^= 1;
    }
};

__device__ void add_products(uint4 w, uint4 x, float (&sum)[4]) {
    const T *a = (const T*)&w, *b = (const T*)&x;
    #pragma unroll
    for (int i = 0; i < 16 / BYTES; i++) sum[i % 4] += wide(a[i]) * wide(b[i]);
}

template <int R, int BYTES_OF_CHUNK>
__device__ void add_chunk(Ring& ring, const T* x, float (&sum)[R][4]) {
    constexpr int n = BYTES_OF_CHUNK / 16;
    const uint4* w[R];
    for (int r = 0; r < R; r++) w[r] = ring.chunk(r);
    #pragma unroll
    for (int i = 0; i < n; i += 32) {
        if (i + 32 > n && i + ring.lane >= n) continue;
        uint4 x16 = ((const uint4*)x)[i + ring.lane];
        for (int r = 0; r < R; r++) add_products(w[r][i + ring.lane], x16, sum[r]);
    }
    for (int r = 0; r < R; r++) ring.done();
}

template <int P, typename Then>
__device__ void product(Ring& ring, const T* w, const T* x, Then then) {  // in lane 0: then(i, row, sums)
    constexpr int K = K_(P), R = R_(P), REST = K * BYTES % CHUNK;
    Dealt rows = dealt<P>();
    for (int i = 0; i < rows.count; i++) {
        float sum[R][4] = {}, total[R];
        int row = rows.first + i * ALL;
        if constexpr (is_bulk(P)) {
            for (int c = 0; c < K * BYTES / CHUNK; c++) add_chunk<R, CHUNK>(ring, x + c * (CHUNK / BYTES), sum);
            if constexpr (REST > 0) add_chunk<R, REST>(ring, x + K * BYTES / CHUNK * (CHUNK / BYTES), sum);
        } else {
            for (int r = 0; r < R; r++)
                for (int k = ring.lane; k < K; k += 32)
                    sum[r][0] += wide(w[((long long)r * N_(P) + row) * K + k]) * wide(x[k]);
        }
        for (int r = 0; r < R; r++) total[r] = warp_sum((sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3]));
        if (ring.lane == 0) then(i, row, total);
    }
}

__device__ const T* norm(Kept& kept, const u64* from, u32 tag, const T* gain) {
    float x[parts(H, THREADS)], squares = 0;
    receive_all<H>(from, tag, x);
    for (int i = 0; i < parts(H, THREADS); i++) squares += x[i] * x[i];
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) kept.squares[threadIdx.x / 32] = squares;
    __syncthreads();
    squares = warp_sum(threadIdx.x % 32 < WARPS ? kept.squares[threadIdx.x % 32] : 0.f);
    float rstd = rsqrtf(squares / H + EPS);
    for (int i = 0; i < parts(H, THREADS); i++) {
        int k = threadIdx.x + i * THREADS;
        if (k < H) kept.normed[k] = narrow(x[i] * rstd * wide(gain[k]));
    }
    __syncthreads();
    return kept.normed;
}

template <int K>
__device__ const T* plain(Kept& kept, const u64* from, u32 tag) {
    float x[parts(K, THREADS)];
    receive_all<K>(from, tag, x);
    for (int i = 0; i < parts(K, THREADS); i++)
        if (int k = threadIdx.x + i * THREADS; k < K) kept.plain[k] = narrow(x[i]);
    __syncthreads();
    return kept.plain;
}
"""
