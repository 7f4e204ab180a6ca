"""What these pairs ask of memory: for tests/traffic/test_lessons.py. kv_cache: counted with c2.torch_hooks.patch."""
# ruff: noqa: F821

CHAPTER_7 = {
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
    "ch7/kv_cache": {  # 2048 of 4096 rows count, in 2 layers
        "baseline": says("cat reads and writes, attention reads, for each of k and v", requested=3),
        "optimized/static": says("attention reads the capacity", requested=2),
        "optimized/paged": says("a gather is counted as reading all blocks; it writes, attention reads", requested=4),
    },
    "ch7/qkv_rope_cache": {  # KiB: a layer's weights are 2560; counted on a CPU, where the norm is nine operations
        "baseline": says("two look-ups, the norm, the product, 11 more", launches=2 + 9 + 1 + 11),
        "optimized/fused": says(
            "each of 320 programs reads x and the gain, 2 KiB, and 32 bytes of the tables",
            launches=1, requested=(2560 + 640 + 10) / 2562, distinct=1, atomics=0,
        ),
    },
}  # fmt: skip
