"""What tests/traffic/test_lessons.py says of these pairs (CHAPTER_7)."""

CHAPTER_7 = {
    "ch7/decode_attention": {  # at 4096 keys the unit is 4 MiB: k and v; shares * 32 parts of 256 bytes
        "baseline": says("keys and values once, by 4 programs", launches=1, requested=1, sectors=1, distinct=1),
        "optimized/split": says(
            "64 shares: 512 KiB of parts, written and read, and their lse", launches=2, atomics=0,
            requested=1 + 2 * 32 * 64 * 260 / (4 << 20), distinct=1 + 2 * 32 * 64 * 260 / (4 << 20),
        ),
        "optimized/last": says(
            "the same bytes in one launch: each of 256 programs counts itself at its head",
            launches=1, requested=1 + 2 * 32 * 64 * 260 / (4 << 20), atomics=256, per_address=64,
        ),
    },
}  # fmt: skip
