// CUDA C++ that reads, writes, copies and chases pointers through a working set, and what each must have done.
//
// In a set that fits in L2 (`mixed`) every block walks all of it, tile by tile and around its end, from a place and with
// a step width of its own: 6 b + 1 tiles, which visits all, since a set is 2^k or 3 * 2^k tiles. So what fits in an SM's
// L1 is read there, and the rest in L2. (Blocks that walked side by side would ask L2 for a line at the same time, and be
// served at once. Below a few MiB they still meet often: the step from L1 to L2 is a slope.) Stores do not stay in L1.
//
// A larger set is walked by all blocks together, as a copy would: a byte is used again when the whole set has passed.

template <bool READS, bool WRITES>
__device__ __forceinline__ void
walk(const uint4* __restrict__ from, uint4* __restrict__ to, unsigned tiles, bool mixed, unsigned steps, unsigned* sums) {
    unsigned tile = (mixed ? blockIdx.x * tiles / gridDim.x : blockIdx.x) % tiles;  // 32 bits: L2 has < 2^14 tiles
    unsigned width = (mixed ? 6 * blockIdx.x + 1 : gridDim.x) % tiles, sum = 0;
    #pragma unroll 1
    for (unsigned step = 0; step < steps; step++) {
        size_t place = (size_t)tile * (THREADS * UNROLL) + threadIdx.x;
        uint4 v[UNROLL];
        #pragma unroll
        for (int k = 0; k < UNROLL; k++)  // all on the way before the first is used
            v[k] = READS ? from[place + k * THREADS] : make_uint4(1, 1, 1, 1);
        #pragma unroll
        for (int k = 0; k < UNROLL; k++)
            if (WRITES) to[place + k * THREADS] = v[k];
            else sum += v[k].x + v[k].y + v[k].z + v[k].w;
        tile = tile + width < tiles ? tile + width : tile + width - tiles;
    }
    if (!WRITES) sums[blockIdx.x * THREADS + threadIdx.x] = sum;  // so that no load may be left out
}

#define KERNEL(name, reads, writes) extern "C" __global__ void __launch_bounds__(THREADS) \
    name(const uint4* __restrict__ from, uint4* __restrict__ to, unsigned tiles, bool mixed, unsigned steps, \
         unsigned* __restrict__ sums) { walk<reads, writes>(from, to, tiles, mixed, steps, sums); }
KERNEL(read_set, true, false)
KERNEL(write_set, false, true)
KERNEL(copy_set, true, true)

// Every line holds the address of the next one in its first 8 bytes: no load can begin before the last one has ended.
__device__ __forceinline__ unsigned long long follow(unsigned long long at) {
    asm volatile("ld.global.u64 %0, [%0];" : "+l"(at));
    return at;
}

extern "C" __global__ void chase(unsigned long long at, unsigned warm, unsigned steps, volatile long long* found) {
    for (unsigned step = 0; step < warm; step++) at = follow(at);
    found[0] = at;  // waits for the last load
    long long begin_ns, end_ns, begin = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns));
    #pragma unroll 1
    for (unsigned step = 0; step < steps; step += CHASES) {
        #pragma unroll
        for (int k = 0; k < CHASES; k++) at = follow(at);
    }
    found[0] = at;
    long long end = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end_ns));
    found[0] = end - begin;
    found[1] = end_ns - begin_ns;
}
