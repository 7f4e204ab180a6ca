"""What gemv, gate_up and prefill ask of memory: for CHAPTER_7 of tests/traffic/test_lessons.py."""
# ruff: noqa: F821

CHAPTER_7 = {
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
}  # fmt: skip
