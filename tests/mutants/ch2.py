"""Chapter 2's wrong versions."""

from mutants.lessons import Mutant

BARRIER = "    __syncthreads();\n"
MUTANTS = {
    "atomics": [
        Mutant("counted before all is zeroed", "bins[threadIdx.x] = 0;\n" + BARRIER, "bins[threadIdx.x] = 0;\n",
               passes="all warps of a block have zeroed theirs before the first has read a byte"),
        Mutant("added up before all is counted", "    }\n" + BARRIER, "    }\n"),
        Mutant("the last n % 16 are left out", "for (int k = i; k < n; ++k)", "for (int k = i; k < n / 16 * 16; ++k)"),
        Mutant("lanes of different warps count without atomics",
               "atomicAdd(&bins[((const unsigned char*)&loaded)[k] * 32 + lane], 1)",
               "bins[((const unsigned char*)&loaded)[k] * 32 + lane] += 1", of="lanes"),
        Mutant("blocks add without atomics", "atomicAdd(&counts[threadIdx.x], sum)", "counts[threadIdx.x] += sum",
               of="lanes"),
        Mutant("a block's sums in 16 bits", "unsigned sum = 0;", "unsigned short sum = 0;", of="lanes"),
    ],
    "bank_conflicts": [
        Mutant("read before all is written", BARRIER, ""),
        Mutant("the bounds of x for the result", "if (column < rows && row + k < columns)",
               "if (column < columns && row + k < rows)"),
        Mutant("no block for the last tiles, not whole", "(-(-columns // 32), -(-rows // 32))",
               "(max(columns // 32, 1), max(rows // 32, 1))"),
    ],
    "divergence": [
        Mutant("the end is looked for before places are traded", "if (i >= n) return;",
               "if (blockIdx.x * blockDim.x + threadIdx.x >= n) return;"),
        Mutant("parity of the thread, not of the element", "if (i % 2 == 0)", "if (threadIdx.x % 2 == 0)"),
        Mutant("eight terms", "float y = c[16];\n    for (int k = 15;", "float y = c[8];\n    for (int k = 7;"),
    ],
    "l2_reuse": [
        Mutant("eight chunks of whole size, without what is left", "x.chunk(CHUNKS), out.chunk(CHUNKS), strict=True",
               "x.split(max(len(x) // CHUNKS, 1))[:CHUNKS], out.split(max(len(x) // CHUNKS, 1)), strict=False"),
        Mutant("chunks that change x", "torch.mul(x, 2, out=y)\n    torch.add(y, 1, out=y)",
               "torch.add(x.mul_(2), 1, out=y)"),
        Mutant("tanh in float16", "torch.tanh(y, out=y)", "y.copy_(torch.tanh(y.half()))"),
    ],
    "memory_parallelism": [
        Mutant("no rounds but those that are whole", "i < n; i += 16 * stride",
               "i + 15 * stride < n; i += 16 * stride"),
        Mutant("the number of SMs of one GPU in the kernel", "int stride = gridDim.x * blockDim.x;",
               "int stride = 132 * 512;"),
        Mutant("the last element is masked", "if (i + k * stride < n) y", "if (i + k * stride < n - 1) y"),
    ],
    "occupancy": [
        Mutant("read before all is written", BARRIER, ""),
        Mutant("a tile of half the threads", "TILE = THREADS ", "TILE = THREADS // 2 "),
        Mutant("reversed within warps", "tile[{THREADS} - 1 - threadIdx.x]", "tile[threadIdx.x ^ 31]"),
    ],
    "peer_copy": [
        Mutant("sent in float16", "out.copy_(x, non_blocking=True)", "out.copy_(x.half(), non_blocking=True)"),
        Mutant("sent in four pieces, without the n % 4 left", "out.copy_(x, non_blocking=True)",
               "out[: len(x) // 4 * 4].copy_(x[: len(x) // 4 * 4], non_blocking=True)"),
        Mutant("a copy is sent once, in setup", "def run(x, out):\n    out.copy_(x, non_blocking=True)",
               'def setup(x, out):\n    return {"there": x.to(out.device)}\n\n\n'
               "def run(x, out, there):\n    out.copy_(there, non_blocking=True)"),
    ],
    "reduction": [
        Mutant("no barrier between steps", "        __syncthreads();\n", ""),
        Mutant("the last n % 4 are left out", "for (int tail = 4 * i; tail < n; ++tail)",
               "for (int tail = 4 * i; tail < n / 4 * 4; ++tail)"),
        Mutant("pairs are added in 32 bits", "((long long)v.x + v.y) + ((long long)v.z + v.w)",
               "(long long)(v.x + v.y) + (v.z + v.w)", of="shuffle"),
        Mutant("read before all warps have written", BARRIER, "", of="shuffle"),
        Mutant("32 warps' sums of 8", "threadIdx.x < 8 ? sums[threadIdx.x] : 0", "sums[threadIdx.x]", of="shuffle"),
        Mutant("blocks add without atomics", "atomicAdd(sum, acc)", "*sum += acc", of="shuffle"),
    ],
    "shared_stencil": [
        Mutant("read before all is written", BARRIER, ""),
        Mutant("no right neighbours for a block's last threads", "k < 256 + 2; k += 256", "k < 256; k += 256"),
        Mutant("beyond the end there is what there is", "if (i >= 0 && i + 4 <= n) return", "if (i >= 0) return"),
        Mutant("the ends are repeated", "if (i + k >= 0 && i + k < n) v[k] = x[i + k];",
               "v[k] = x[min(max(i + k, 0), n - 1)];"),
    ],
    "tensor_cores": [
        Mutant("x is not masked along k: zeros of w_b take care of it",
               "tl.load(a_ptr + offs_m % M * K + offs_ak, mask=offs_ak < K, other=0.0)",
               "tl.load(a_ptr + offs_m % M * K + offs_ak)", of="tf32"),
        Mutant("the last k % BLOCK_K are dropped", "range(0, K, BLOCK_K)", "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)",
               of="tf32"),
        Mutant("no programs for a group of rows that is not whole", "triton.cdiv(m, 128 * GROUP_M.value)",
               "max(m // (128 * GROUP_M.value), 1)", of="tf32"),
        Mutant("sums rounded to float16 after each step", 'acc = tl.dot(a, b, acc, input_precision="tf32")',
               'acc = tl.dot(a, b, acc, input_precision="tf32").to(tl.float16).to(tl.float32)', of="tf32"),
        Mutant("sums rounded to bfloat16 after each step", "acc = tl.dot(a, b, acc)",
               "acc = tl.dot(a, b, acc).to(tl.bfloat16).to(tl.float32)", of="bf16",
               passes="the check sizes have one step along k, whose sum is less wrong than x and w_b in bfloat16"),
        Mutant("weights in float8", "w_b.bfloat16()", "w_b.to(torch.float8_e4m3fn).bfloat16()", of="bf16"),
    ],
    "transpose": [
        Mutant("as many tiles down as there should be across", "(triton.cdiv(columns, 64), triton.cdiv(rows, 64))",
               "(triton.cdiv(rows, 64), triton.cdiv(columns, 64))"),
        Mutant("x is taken for square", "x_ptr + row * columns + column", "x_ptr + row * rows + column"),
        Mutant("no programs for the last rows, no whole tile", "triton.cdiv(rows, 64))]", "max(rows // 64, 1))]"),
        Mutant("the last column is masked", "(column < columns)", "(column < columns - 1)"),
    ],
}  # fmt: skip
