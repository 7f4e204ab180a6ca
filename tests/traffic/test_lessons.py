"""What each version asks for is what its text says, counted at the size `count`: a lesson that contradicts it fails.

Counts are those of recorded/counts.json where the pair is as it was then; one of each chapter is counted anew.

An expected amount is the arithmetic of the pair's own docstring, at that size. `requested`, `sectors`, `distinct`,
`tma` and `allocated` are in units of the bytes of memory in its `cost`, the minimum work; `flops`, `h2d` and `d2h` in
units of what it names. Launches, atomics and the most atomics on one address are numbers.
"""

from dataclasses import dataclass

import pytest

from common.cli.counts import load_counts
from common.pairs.pair import chapters, discover
from common.traffic.versions import count_versions
from common.xray.occupancy import MACHINES

PAIRS = {f"{pair.chapter}/{pair.name}": pair for folder in chapters().values() for pair in discover(folder)}
QUICK = ("ch1/coalescing", "ch2/transpose")
ANEW = (*QUICK, "ch3/add", "ch4/tile_size", "ch5/fcgp")
NEAR = 0.01  # rows' own numbers, weights that all rows share, tails: each is less than that of the whole


@dataclass(frozen=True)
class Says:
    """What a version's text says, by amount; `why`: where from. Without amounts: why there is no count."""

    why: str
    amounts: dict[str, float]


def says(why, **amounts):
    return Says(why, amounts)


CUDA = "CUDA C++"
NOT_COUNTED = {
    "ch1/arithmetic_intensity": CUDA, "ch1/batched_gemm": "CuPy", "ch2/atomics": CUDA, "ch2/bank_conflicts": CUDA,
    "ch2/divergence": CUDA, "ch2/memory_parallelism": CUDA, "ch2/occupancy": CUDA, "ch2/peer_copy": "several GPUs",
    "ch2/reduction": CUDA, "ch2/shared_stencil": CUDA,
    **{name: "several processes" for name, pair in PAIRS.items() if pair.ranks > 1},
}  # fmt: skip
OPTIMIZER = "what `_foreach_*_` and torch's fused optimizer write is not counted"
PRODUCTS = "products of a library forward and backward, FLOPs are their limit"
NOT_STATED = {  # the counter sees them, or a part of them; their texts state launches of a GPU, bytes kept, or times
    "ch8/training_step": OPTIMIZER, "ch8/adamw": OPTIMIZER, "ch8/head_loss": PRODUCTS, "ch8/checkpointing": PRODUCTS,
    "ch8/accumulation": PRODUCTS, "ch8/channels_last": PRODUCTS, "ch8/data_loading": "other processes fetch",
    "ch8/graph_breaks": "asks for values", "ch8/recompilation": "compiled for each length",
}  # fmt: skip

CHAPTER_1 = {
    "ch1/batch_size": {  # 5 layers; x is 512 KiB, the parameters of a layer are 64.5
        "baseline": says(
            "32 batches: two calls a layer, all parameters read for each; then `cat`",
            launches=32 * 10 + 1, flops=1, requested=(5 * (4 * 512 + 32 * 64.5) + 2 * 512) / (2 * 512 + 5 * 64.5),
        ),
        "optimized": says(
            "1/16 of the calls, the parameters read for 2 batches",
            launches=2 * 10 + 1, flops=1, requested=(5 * (4 * 512 + 2 * 64.5) + 2 * 512) / (2 * 512 + 5 * 64.5),
        ),
    },
    "ch1/coalescing": {
        "baseline": says("lanes far apart: a sector of 32 bytes for 4, both ways", requested=1, sectors=8, distinct=1),
        "optimized/adjacent": says("adjacent lanes: each byte of a sector used", requested=1, sectors=1, distinct=1),
        "optimized/wide": says("the same sectors, asked for by fewer instructions", requested=1, sectors=1, distinct=1),
    },
    "ch1/cuda_graphs": {  # 20 layers; x is 32 KiB, the parameters of a layer are 257
        "baseline": says("2 * 20 calls", launches=40, flops=1, requested=20 * (4 * 32 + 257) / (2 * 32 + 20 * 257)),
        "optimized": says(
            "the same kernels, replayed, and a copy of x",
            launches=41, flops=1, requested=(20 * (4 * 32 + 257) + 2 * 32) / (2 * 32 + 20 * 257),
        ),
    },
    "ch1/double_buffering": {
        "baseline": says("a chunk in, a product, a chunk out", launches=4, flops=1, h2d=1, d2h=1),
        "optimized": says("the same, on two streams", launches=4, flops=1, h2d=1, d2h=1),
    },
    "ch1/pinned_memory": {
        "baseline": says("every byte over the link once, no kernel", launches=0, h2d=1),
        "optimized": says("every byte over the link once, no kernel", launches=0, h2d=1),
    },
    "ch1/preallocation": {  # the unit is 2 arrays
        "baseline": says("four steps move 9 arrays, each makes one", launches=4, requested=9 / 2, allocated=4 / 2),
        "optimized": says(
            "the same nine arrays of traffic, no memory asked for", launches=4, requested=9 / 2, allocated=0
        ),
    },
}  # fmt: skip

CHAPTER_2 = {
    "ch2/l2_reuse": {
        "baseline": says("8 passes where 2 would do", launches=4, requested=8 / 2),
        "optimized": says("32 calls; what they find in L2 they ask for all the same", launches=32, requested=8 / 2),
    },
    "ch2/tensor_cores": {
        "baseline": says("a multiply-add for each of m, n and k", launches=1, flops=1),
        "optimized/tf32": says("the same, in TF32", launches=1, flops=1),
        "optimized/tile": says("the same in larger tiles", launches=1, flops=1),
        "optimized/bf16": says("the same, in bfloat16; x is converted in every call", launches=2, flops=1),
    },
    "ch2/transpose": {
        "baseline": says(
            "a load is 32 sectors for 32 lanes, a store uses all it has", requested=1, sectors=(8 + 1) / 2
        ),
        "optimized": says("rows are read and rows are written", requested=1, sectors=1, distinct=1),
    },
}  # fmt: skip

CHAPTER_3 = {
    "ch3/add": {
        "baseline": says("every byte that arrives is used; a new result", requested=1, sectors=1, allocated=1 / 3),
        "optimized/flat": says("the same bytes, into `out`", requested=1, sectors=1, allocated=0),
        "optimized/tuned": says("the same bytes, into `out`", requested=1, sectors=1, allocated=0),
    },
    "ch3/add_small": {
        "baseline": says("reads two, writes one", launches=1, requested=1, sectors=1),
        "optimized": says("launches a compiled kernel itself"),
        "optimized/graph": says("1024 KiB for the copies beside 768 KiB", launches=3, requested=(768 + 1024) / 768),
    },
    "ch3/data_movement": {
        "baseline": says("transpose: lanes that write side by side read a row apart", requested=1, sectors=(8 + 1) / 2),
        "optimized/tiles": says("transpose: tiles, adjacent on both sides", requested=1, sectors=1, distinct=1),
        "optimized/tuned": says(
            "transpose: tiles, read along rows, written along columns", requested=1, sectors=1, distinct=1
        ),
    },
    "ch3/dropout": {  # the unit is 16 bytes an element
        "baseline": says(
            "a byte an element, written once and read once", launches=2, requested=18 / 16, allocated=9 / 16
        ),
        "optimized": says("stores none of it", launches=2, requested=1, allocated=8 / 16),
    },
    "ch3/elementwise": {  # the unit is 2 matrices
        "baseline": says("every byte that arrives is used; a new result", requested=1, sectors=1, allocated=1 / 2),
        "optimized/flat": says("the same bytes, into `out`", requested=1, sectors=1, allocated=0),
        "optimized/tuned": says("the same bytes, into `out`", requested=1, sectors=1, allocated=0),
    },
    "ch3/fused_elementwise": {  # the unit is 3 matrices
        "baseline": says("five operations, 12 matrices in all", launches=5, requested=12 / 3, distinct=12 / 3),
        "optimized/fused": says("each row reads the vectors again", launches=1, requested=5 / 3, distinct=1),
        "optimized/tuned": says("2 * 2 KiB of the vectors beside 3 * 2 KiB", launches=1, requested=5 / 3, distinct=1),
    },
    "ch3/layer_norm": {  # 128 rows; weight and bias are a row each, which every row's program reads
        "baseline": says("a row read three times, written once", requested=(4 + 2) * 128 / 258, distinct=1),
        "optimized/registers": says("read once, written once", requested=(2 + 2) * 128 / 258, distinct=1),
        "optimized/welford": says("read twice, written once", requested=(3 + 2) * 128 / 258, distinct=1),
        "optimized/cached": says("read once from memory, and once more", requested=(3 + 2) * 128 / 258, distinct=1),
        "optimized/tuned": says("read once, written once", requested=(2 + 2) * 128 / 258, distinct=1),
    },
    "ch3/layer_norm_backward": {  # 256 rows of 1024, 16 programs at once (on a CPU); the unit is 3 rows for each
        "baseline": says(
            "rows * columns * 2 atomic additions, `rows` to each address; they read and write, weight is read",
            launches=2, requested=(3 + 1 + 4) / 3, atomics=256 * 1024 * 2, per_address=256,
        ),
        "optimized/locked": says(
            "a lock taken and let go for each row, by 256 / 64 rows each; 2 sums are read and written for each row",
            atomics=256 * 2, per_address=256 // 64 * 2,
        ),
        "optimized/partial": says(
            "no atomics: 2 sums of each program written and read, weight read by each",
            launches=2, requested=(3 * 256 + 2 * 2 * 16 + 16) / (3 * 256), atomics=0,
        ),
        "optimized/split": says(
            "the same (no other part: 1024 columns are one)",
            launches=2, requested=(3 * 256 + 2 * 2 * 16 + 16) / (3 * 256), atomics=0,
        ),
        "optimized/tuned": says(
            "the same, by a kernel of its own",
            launches=2, requested=(3 * 256 + 2 * 2 * 16 + 16) / (3 * 256), atomics=0,
        ),
    },
    "ch3/reduction": {
        "baseline": says("read once; 4 bytes for each 4 KiB are written and read", launches=2, requested=1 + 2 / 1024),
        "optimized/walk": says("read once; 12 programs (on a CPU) leave a sum each", launches=2, requested=1),
        "optimized/last": says(
            "one launch; each of 12 programs (on a CPU) counts itself", launches=1, requested=1, per_address=12
        ),
    },
    "ch3/reductions": {
        "baseline": says("over rows: 4 of 32 bytes used", launches=1, requested=1, sectors=8),
        "optimized/adjacent": says("every byte of a sector used", launches=1, requested=1, sectors=1),
        "optimized/stripes": says(
            "1/512 is written and read", launches=2, requested=1 + 2 / 512, sectors=1 + 2 / 512
        ),
        "optimized/tuned": says(
            "1/16 of it is written, and read by half sectors", launches=2, sectors=1 + 1 / 16 + 2 / 16
        ),
    },
    "ch3/rms_norm": {  # 128 rows; weight is a row, which every row's program reads
        "baseline": says("read twice, written once", requested=(3 + 1) * 128 / 257, distinct=1),
        "optimized/registers": says("read once, written once", requested=(2 + 1) * 128 / 257, distinct=1),
        "optimized/cached": says("read once from memory, and once more", requested=(3 + 1) * 128 / 257, distinct=1),
        "optimized/tuned": says("read once, written once", requested=(2 + 1) * 128 / 257, distinct=1),
    },
    "ch3/rms_norm_backward": {  # as of layer_norm_backward, with one sum
        "baseline": says(
            "rows * columns atomic additions, `rows` to each address; they read and write, weight is read",
            launches=2, requested=(3 + 1 + 2) / 3, atomics=256 * 1024, per_address=256,
        ),
        "optimized/locked": says(
            "a lock taken and let go for each row, by 256 / 64 rows each; a sum is read and written for each row",
            atomics=256 * 2, per_address=256 // 64 * 2,
        ),
        "optimized/partial": says(
            "no atomics: a sum of each program written and read, weight read by each",
            launches=2, requested=(3 * 256 + 2 * 16 + 16) / (3 * 256), atomics=0,
        ),
        "optimized/split": says(
            "the same (no other part: 1024 columns are one)",
            launches=2, requested=(3 * 256 + 2 * 16 + 16) / (3 * 256), atomics=0,
        ),
        "optimized/tuned": says(
            "the same, by a kernel of its own",
            launches=2, requested=(3 * 256 + 2 * 16 + 16) / (3 * 256), atomics=0,
        ),
    },
    "ch3/softmax": {
        "baseline": says("4 elements moved where 2 would do", requested=4 / 2, sectors=4 / 2, distinct=1),
        "optimized/registers": says("each read once and written once", requested=1, sectors=1, distinct=1),
        "optimized/online": says("read twice, written once", requested=3 / 2, sectors=3 / 2, distinct=1),
        "optimized/split": says(
            "read twice; two numbers of each of two pieces written, and read by both", launches=2,
            requested=(3 * 4096 + 2 * 2 + 2 * 2 * 2) / (2 * 4096),
        ),
        "optimized/tuned": says("each read once and written once", requested=1, sectors=1, distinct=1),
    },
    "ch3/softmax_backward": {
        "baseline": says("5 elements moved where 3 would do", requested=5 / 3, distinct=1),
        "optimized/registers": says("3 elements are moved", requested=1, sectors=1, distinct=1),
        "optimized/cached": says("both rows are read twice", requested=5 / 3, distinct=1),
        "optimized/tuned": says("3 elements are moved", requested=1, sectors=1, distinct=1),
    },
}  # fmt: skip

N = 512
CAUSAL = N * (N + 1) / 2  # scores of a head that a mask leaves
SKINNY = 4 + 1 / 64 + 1 / 8  # MiB of w_b, x and c
CHAPTER_4 = {
    "ch4/attention": {  # u: bytes of q; the unit is 4 u. Scores are 8 u, causal
        "baseline": says(
            "scores written, masked, through softmax, read: 6 * 8; q, k, v, o; q is scaled, a mask of 1 u made",
            requested=(6 * 8 + 4 + 2 + 4) / 4, flops=N * N / CAUSAL,
        ),
        "optimized/online": says(
            "q and o once, k and v by each of 8 programs of a head; masked scores are computed, too",
            requested=(2 + 8 * 2) / 4, distinct=1, flops=N * N / CAUSAL,
        ),
        "optimized/skipped": says(
            "1 to 8 of the 8 blocks: 36 of 64", requested=(2 + 36 / 8 * 2) / 4, distinct=1, flops=36 * 64**2 / CAUSAL
        ),
        "optimized/tma": says(
            "no byte less is moved, all by descriptor",
            requested=(2 + 36 / 8 * 2) / 4, tma=11 / 4, flops=36 * 64**2 / CAUSAL,
        ),
        "optimized/overlapped": says(
            "the same in another order", requested=(2 + 36 / 8 * 2) / 4, tma=11 / 4, flops=36 * 64**2 / CAUSAL
        ),
        "optimized/gluon": says("written in Gluon"),
        "optimized/tuned": says("written in Gluon"),
    },
    "ch4/attention_backward": {  # the unit is 7 u; no mask; a row's number (lse, delta) is 1/32 u
        "baseline": says(
            "forward 4 passes of 8 u, backward 7; q scaled both ways, q and k and v, o and do, three gradients",
            requested=((4 + 7) * 8 + 2 + 4 + 2 + 8) / 7, flops=1,
        ),
        "optimized/recomputed": says(
            "forward q, o, 8 times k, v; o, do; q, do, dq, 8 times k, v; k, v, dk, dv, 8 times q, do; 9 products",
            launches=4, requested=((2 + 16) + 2 + (3 + 16) + (4 + 16) + (1 + 1 + 2 + 16) / 32) / 7, flops=9 / 6,
            atomics=0,
        ),
        "optimized/one_pass": says(
            "8 blocks of keys read, add to and write dq in float32 (2 u), zero before, rounded after; 7 products",
            launches=5, requested=((2 + 16) + 2 + (4 + 16) + 8 * 4 + 2 + 3 + (1 + 1 + 16) / 32) / 7, flops=7 / 6,
            atomics=8 * 2 * 512 * 64, per_address=8,
        ),
        "optimized/tuned": says("written in Gluon"),
    },
    "ch4/batched_matmul": {
        "baseline": says("40 launches, tiles of 64 x 64: a, b twice", launches=40, requested=(2 + 2 + 1) / 3, flops=1),
        "optimized/one_launch": says("the same tiles, once", launches=1, requested=(2 + 2 + 1) / 3, flops=1),
        "optimized/tf32x3": says("the same in 16 bits", launches=1, requested=(2 + 2 + 1) / 3, flops=1),
        "optimized/tuned": says("its smallest tile is the same", launches=1, requested=(2 + 2 + 1) / 3, flops=1),
    },
    "ch4/fused_activation": {  # m = n = 2 k: a and b are half of c, the unit is 2 c
        "baseline": says(
            "the product is written, read, written again", launches=2, requested=(1 + 3) / 2, distinct=4 / 2
        ),
        "optimized/fused": says(
            "written once; a 2 times, b 4 times", launches=1, requested=(1 + 2 + 1) / 2, distinct=1, flops=1
        ),
        "optimized/persistent": says("the same by descriptor", launches=1, requested=2, tma=2, distinct=1, flops=1),
        "optimized/ping_pong": says("written in Gluon"),
        "optimized/tuned": says("written in Gluon"),
    },
    "ch4/matmul": {  # as of fused_activation
        "baseline": says("tiles of 32 x 32: a and b 16 times", requested=(8 + 8 + 1) / 2, distinct=1, flops=1),
        "optimized/tile": says("128 x 256: a 2 times, b 4 times", requested=(1 + 2 + 1) / 2, distinct=1, flops=1),
        "optimized/pipelined": says("the same, earlier", requested=4 / 2, distinct=1, flops=1),
        "optimized/tma": says("the same by descriptor", requested=4 / 2, tma=4 / 2, distinct=1, flops=1),
        "optimized/grouped": says("the same in any order", requested=4 / 2, tma=4 / 2, distinct=1, flops=1),
        "optimized/persistent": says("the same by descriptor", requested=4 / 2, tma=4 / 2, distinct=1, flops=1),
        "optimized/specialized": says("the same by descriptor", requested=4 / 2, tma=4 / 2, distinct=1, flops=1),
        "optimized/gluon": says("written in Gluon"),
        "optimized/tuned": says("written in Gluon"),
    },
    "ch4/precision": {
        "baseline": says("sums in float32", launches=1, flops=1),
        "optimized/fp16": says("the same products", launches=1, flops=1),
        "optimized/promoted": says("the same products", launches=1, flops=1),
    },
    "ch4/split_k": {  # MiB: x is read by 64 tiles; 4 sums of each element of c in float32 are 1
        "baseline": says("w_b once", launches=1, requested=(4 + 1 + 1 / 8) / SKINNY, distinct=1),
        "optimized/split": says(
            "1 MiB written and read; the sums, 256 KiB, written and read; 128 written",
            launches=3, requested=(4 + 1 + 2 + 1 / 2 + 1 / 8) / SKINNY, atomics=0,
        ),
        "optimized/atomic": says(
            "256 KiB set to zero, 262,144 additions, 4 to each address; 256 KiB read, 128 written",
            launches=3, requested=(4 + 1 + 1 / 4 + 2 + 1 / 4 + 1 / 8) / SKINNY, atomics=262_144, per_address=4,
        ),
        "optimized/last": says(
            "the same bytes in one launch: each of 256 programs counts itself at its tile",
            launches=1, requested=(4 + 1 + 2 + 1 / 8) / SKINNY, atomics=256, per_address=4,
        ),
        "optimized/tuned": says("one launch adds up", launches=2, requested=(4 + 1 + 2 + 1 / 8) / SKINNY, atomics=0),
    },
    "ch4/tile_size": {
        "baseline": says("64 x 64 of 512 x 512: each factor 8 times", requested=(8 + 8 + 1) / 3, distinct=1, flops=1),
        "optimized": says("128 x 256: a 2 times, b 4 times", requested=(2 + 4 + 1) / 3, distinct=1, flops=1),
    },
}  # fmt: skip

W = 20 / 8  # u: 20 matrices N x N beside 8 blades of B x N, at B = N; the tables are of B = 8 N, where W is 1/8 of that
LAYER = 2 + 4 / 64 + 20 / 4096  # u: x and out, 4 matrices N x N and a feature's weights, at B = 8 N
CHAPTER_7 = {
    "ch7/decode": {  # 2 layers
        "baseline": says("52 operations a layer, of which 4 copy the history", launches=2 * 52 + 10),
        "optimized/static": says(
            "52 a layer, of which 2 write a row each and 2 mask; the mask and the angles", launches=2 * 52 + 14
        ),
        "optimized/graph": says("the same kernels, and two integers", launches=2 * 52 + 16),
        "optimized/fused": says(
            "5 kernels a layer, the embedding and the head; 16 programs count themselves at each of 2 heads",
            launches=2 * 5 + 2, atomics=2 * 2 * 16, per_address=16,
        ),
        "optimized/dependent": says("the same, and two integers", launches=2 * 5 + 4, atomics=2 * 2 * 16),
        "optimized/one": says(
            "2 products a layer add 256 rows to x, 16 programs count themselves at each of 2 heads; it arrives 13 "
            "times, leaves once, asks 9 times before a product and 64 before a share of a head: 80 at one counter",
            launches=1, atomics=2 * 2 * 256 + 2 * 2 * 16 + 13 + 1 + 9 + 64, per_address=9 + 7 + 64,
        ),
    },
    "ch7/gemv": {  # KiB: W is 4096, x 16; the unit is both
        "baseline": says("x for each of 256 rows", launches=1, requested=(4096 + 256 * 16) / 4112, distinct=1),
        "optimized/rows": says("x for 8 rows", launches=1, requested=(4096 + 32 * 16) / 4112, distinct=1),
        "optimized/loads_first": says("the same, in another order", launches=1, requested=(4096 + 32 * 16) / 4112),
        "optimized/split_k": says(
            "4 programs share 8 rows, each reads its part of x; 4 KiB of sums written and read; each program counts",
            launches=1, requested=(4096 + 32 * 16 + 2 * 4) / 4112, atomics=32 * 4, per_address=4,
        ),
    },
    "ch7/gate_up": {  # KiB: the weights are 2 * 8192, x and w_norm 4 each
        "baseline": says("both weights once, and little else", requested=1, distinct=1),
        "optimized/fused": says("x and w_norm for 4 rows", launches=1, requested=(2 * 8192 + 512 * 8) / (2 * 8192 + 8)),
    },
    "ch7/prefill": {  # counted on a CPU, where the norm is 6 operations; on a GPU it is one
        "baseline": says("norm, 3 products, silu, product, sum, copy for each token", launches=1024 * (6 + 7), flops=1),
        "optimized/batched": says("all tokens at once", launches=6 + 6, flops=1),
        "optimized/chunked": says("two chunks, each copied", launches=2 * (6 + 7), flops=1),
    },
    "ch7/decode_attention": {  # KiB: k and v are 4096; 64 shares a head
        "baseline": says("keys and values once, by 4 programs", launches=1, requested=1, sectors=1, distinct=1),
        "optimized/split": says(
            "each program reads 8 queries, 1 KiB; 32 * 64 parts of 260 bytes, with their lse, written and read",
            launches=2, requested=(4096 + 256 + 2 * 520) / 4096, distinct=(4096 + 2 * 520) / 4096, atomics=0,
        ),
        "optimized/last": says(
            "the same bytes in one launch: each of 256 programs counts itself at its head",
            launches=1, requested=(4096 + 256 + 2 * 520) / 4096, atomics=256, per_address=64,
        ),
    },
    "ch7/kv_cache": {  # 2048 of 4096 rows count, in 2 layers; scores pass 32 bytes, with a mask 40, a query and row
        "baseline": says("cat reads and writes, attention reads, for each of k and v", requested=3 + 32 * 4 / 512),
        "optimized/static": says("attention reads the capacity", requested=2 * (1 + 40 * 4 / 512)),
        "optimized/paged": says(
            "a gather is counted as reading all blocks; it writes, attention reads", requested=4 + 32 * 4 / 512
        ),
    },
    "ch7/qkv_rope_cache": {  # KiB: a layer's weights are 2560; counted on a CPU, where the norm is nine operations
        "baseline": says("two look-ups, the norm, the product, 11 more", launches=2 + 9 + 1 + 11),
        "optimized/fused": says(
            "each of 320 programs reads x and the gain, 2 KiB, and 32 bytes of the tables",
            launches=1, requested=(2560 + 640 + 10) / 2562, distinct=1, atomics=0,
        ),
    },
}  # fmt: skip

CHAPTER_8 = {
    "ch8/eight_bit_adam": {  # the unit is 16 bytes a weight, and a scale for 256 of each moment, read and written
        "baseline": says("220 bytes a weight in operations of torch", launches=38, distinct=220 / (16 + 16 / 256)),
        "optimized/fused": says("w, its gradient and both codes; w and codes", launches=1, requested=1, distinct=1),
    },
}

CHAPTER_5 = {
    "ch5/fcgp": {  # the unit is x, y, out and W
        "baseline": says(
            "273 kernels, 87 u, of which 44 of the 20 N x N of W are 0.7 at B = 8 N",
            launches=273, requested=(86.7 + 44 / 8 - 0.7) / (3 + W), flops=1,
        ),
        "optimized/by_grade": says("4 products; z is made term by term", flops=1),
        "optimized/tuned": says(
            "18 u; W read, written by grades, read; the normalization reads out again, from L1",
            launches=6, requested=(18 + 1 + 3 * W) / (3 + W), distinct=(18 + 3 * W) / (3 + W), flops=1,
        ),
        "optimized/fused": says(
            "5 u from memory; x and y loaded for each of 4 grades (one tile of columns at N = 64), out twice again",
            launches=2, requested=(4 * 2 + W + 1 + 3) / (3 + W), distinct=(5 + W) / (3 + W), flops=1,
        ),
        "optimized/tf32x3": says("three for one", flops=3),
        "optimized/tf32": says(
            "as tuned, and W turned",
            requested=(18 + 1 + 5 * W) / (3 + W), distinct=(18 + 5 * W) / (3 + W), flops=1,
        ),
    },
    "ch5/fcgp_backward": {  # the unit is 8 u and 3 W
        "baseline": says(
            "790 kernels, 252 u, of which W and its gradient are 0.7 + 1.4 + 1.8 at B = 8 N",
            launches=790, requested=(252 + 7 * 3.9) / (8 + 3 * W), flops=1,
        ),
        "optimized/by_grade": says("12 products; the rest by autograd, term by term", flops=1),
        "optimized/tuned": says(
            "53 u; 3 W forward, 6 W backward; both normalizations read again, 1 u and 2 u",
            requested=(53 + 3 + 9 * W) / (8 + 3 * W), distinct=(53 + 9 * W) / (8 + 3 * W), flops=1,
        ),
        "optimized/tf32": says("as tuned, and W turned", requested=(53 + 3 + 11 * W) / (8 + 3 * W), flops=1),
    },
    "ch5/layer": {
        "baseline": says("277 kernels, 4.6 u and 86 u", launches=277, requested=(4.6 + 86) / LAYER, flops=1),
        "optimized": says("the same, and y's scalar blade read and written for the bias", launches=4, flops=1),
        "optimized/tuned": says(
            "5 u; the matrices of grades read, written for 8 blades, read",
            launches=3, distinct=(5 + (4 + 8 + 8) / 64) / LAYER, flops=1,
        ),
    },
    "ch5/layout": {
        "baseline": says("4 of a sector's 32 bytes", requested=1, sectors=8, distinct=1),
        "optimized": says("side by side, every byte used", requested=1, sectors=1, distinct=1),
    },
    "ch5/sgp": {  # B = 512
        "baseline": says(
            "49.3 u; D^3 numbers a feature, 1/8 u, moved 5 times",
            launches=41, requested=(49.3 + 5 / 8) / (3 + 20 / 4096)
        ),
        "optimized/written_out": says("69 u and 17 u; 6.7x the launches", launches=273, requested=(69 + 17) / 3),
        "optimized/fused": says(
            "one kernel, 3 u; a row of 8 blades each reads 20 weights, from L1", launches=1,
            requested=(3 + 20 / 8) / (3 + 20 / 4096), distinct=1,
        ),
        "optimized/tuned": says("one kernel, 3 u", launches=1, sectors=1, distinct=1),
    },
    "ch5/sgp_backward": {  # B = 256
        "baseline": says(
            "130 u; D^3 numbers a feature, 1/4 u, moved 10 times",
            launches=116, requested=(130 + 10 / 4) / (8 + 60 / 2048)
        ),
        "optimized/written_out": says("129 u and 44 u beside 86 u", launches=834, requested=(129 + 44 + 86) / 8),
        "optimized/fused": says(
            "3 u and 5 u; weights by row forward, by 16 rows back; sums of 16 rows written, read, added",
            launches=3, requested=(8 + 20 / 8 + 3 * 20 / 128) / (8 + 60 / 2048),
        ),
        "optimized/tuned": says("one kernel each way and the sum of partial sums, 8 u", launches=3, distinct=1),
    },
}  # fmt: skip
LESSONS = CHAPTER_1 | CHAPTER_2 | CHAPTER_3 | CHAPTER_4 | CHAPTER_5 | CHAPTER_7 | CHAPTER_8


def counted(name, size):
    """In the process that interprets."""
    return count_versions(PAIRS[name].versions, PAIRS[name], size, MACHINES["sm_90"], False, lambda *_: None)


def amounts_of(found):
    """Of one Counted: what a lesson can speak of."""
    traffic, all_of_it = found.traffic, found.traffic.total
    flops = sum(amount for key, amount in found.cost.items() if key.endswith("_flops"))
    return {
        "launches": traffic.launches, "atomics": all_of_it.atomics, "per_address": all_of_it.max_atomics_per_address,
        "requested": traffic.requested_bytes / found.unit, "sectors": traffic.sector_bytes / found.unit,
        "distinct": traffic.distinct_bytes / found.unit, "allocated": traffic.allocated_bytes / found.unit,
        "tma": 32 * all_of_it.through_tma / found.unit, "flops": sum(traffic.flops.values()) / (flops or 1),
        **{way: traffic.copied.get(f"{way}_bytes", 0) / found.cost.get(f"{way}_bytes", 1) for way in ("h2d", "d2h")},
    }  # fmt: skip


def contradictions(found, lesson):
    """What a Counted has of another size than its text says: amount -> (counted, said)."""
    if not lesson.amounts or found.traffic is None:
        fits = not lesson.amounts and found.traffic is None and lesson.why in found.reason
        return {} if fits else {"reason": (found.reason, lesson.why)}
    amounts = amounts_of(found)
    exact = ("launches", "atomics", "per_address")
    return {
        name: (amounts[name], said)
        for name, said in lesson.amounts.items()
        if amounts[name] != pytest.approx(said, rel=0 if name in exact else NEAR, abs=0)
    }


def test_every_pair_and_version_says_what_it_asks_for():
    others = NOT_COUNTED.keys() | NOT_STATED.keys()
    missing = PAIRS.keys() - LESSONS.keys() - others
    assert not missing, "say what each asks for in LESSONS (SIZES need a `count`), or why not in NOT_COUNTED"
    assert (LESSONS.keys() | others) - PAIRS.keys() == set() == LESSONS.keys() & others
    for name, lesson in LESSONS.items():
        assert lesson.keys() == {version.label for version in PAIRS[name].versions}, name
    assert {name for name, pair in PAIRS.items() if "count" in pair.sizes} == LESSONS.keys()


@pytest.fixture(scope="module")
def kept():
    """Pair -> its versions as they were counted, of those that have not changed since."""
    pairs = ((f"{each.chapter}/{each.name}", each) for each in load_counts() if each.size == "count")
    return {name: each.versions for name, each in pairs if each.is_current(PAIRS.get(name))}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.rest) for name in LESSONS]
)
def test_what_is_counted_is_what_the_text_says(name, kept, interpreter):
    found = kept.get(name)
    if found is None or name in ANEW:
        found = interpreter.submit(counted, name, "count").result()
        for now, before in zip(found, kept.get(name, found), strict=True):
            assert now.label == before.label and amounts_of(now) == pytest.approx(amounts_of(before), rel=1e-5)
    told = {each.label: contradictions(each, LESSONS[name][each.label]) for each in found}
    assert told == {version.label: {} for version in PAIRS[name].versions}


@pytest.mark.parametrize(("name", "why"), NOT_COUNTED.items())
def test_what_cannot_be_counted_says_why(name, why, interpreter):
    found = interpreter.submit(counted, name, "check").result()
    assert [each.label for each in found if each.traffic or each.failed or why not in each.reason] == []


def test_a_text_that_promised_another_count_would_be_found_out(interpreter):
    baseline, optimized, _ = interpreter.submit(counted, "ch1/coalescing", "count").result()
    lesson = LESSONS["ch1/coalescing"]
    assert contradictions(optimized, lesson["baseline"]) == {"sectors": (pytest.approx(1), 8)}
    assert contradictions(baseline, lesson["optimized/adjacent"]) == {"sectors": (pytest.approx(8), 1)}
    assert contradictions(baseline, says("CUDA C++")) and not contradictions(baseline, lesson["baseline"])
    assert contradictions(baseline, says("", launches=2)) == {"launches": (1, 2)}
