"""Decode one token in one kernel: weights are on their way through all of a step, also while CTAs wait for x.

Problem: in `optimized_decode_dependent.py` a kernel loads what fits into the registers of its programs before it waits.
From its end to the first sums of the next nobody asks for more weights.
Idea: one CTA an SM stays for the whole step. Each of its warps knows its rows of all layers, and asks for the next
piece of 4 KiB as soon as a slot of its ring in shared memory is free, whatever it waits for. What one CTA writes for
all others goes as words: a float and its layer's number in 8 bytes. Who reads one looks until the number is right:

    dependent   5 kernels a layer    ... y | end | start | x, sum ...     a boundary: all of a kernel's programs end
    one         1 kernel a step      ... y ------> x, sum ...             a store and a load through L2

Cost: the same weights, once, and one launch. A vector of n floats is 8 n bytes that each CTA reads from L2: at the
default size 132 x 8 x (2 x 2048 + 2048 + 5632) = 12 MB a layer, beside 88 MB of weights from memory. (`PARTS` and
`STEP` in `decode_one_parts.py` and `decode_one_kernel.py` are the kernel.)
Predict: the rings of all SMs hold 25 MB. How long can a layer's waits be, at 4.3 TB/s, before memory idles?
"""

import decode_one_kernel
import model

VERSUS = "dependent"
STRESS = {
    "arrays with gaps": "a model's own weights are contiguous",
    "arrays with wide gaps": "a model's own weights are contiguous",
    "arrays with gaps in rows": "a model's own weights are contiguous",
    "arrays with gaps in middle axes": "a model's own weights are contiguous",
    "transposed arrays": "a model's own weights are contiguous",
    "expanded arrays": "a model's own weights are contiguous",
}
DEVICE = "cuda"
REQUIRES = {"capability": (9, 0)}  # copies in bulk, and barriers that count their bytes, are Hopper's


def inputs(
    hidden=2048, layers=22, heads=32, kv_heads=4, width=64, inner=5632, vocabulary=32_000, context=1024,
    dtype="bfloat16", device="cuda",
):  # fmt: skip
    return model.drawn(hidden, layers, heads, kv_heads, width, inner, vocabulary, context, dtype, device)


def setup(token, position, cache_k, cache_v, w_cos, w_sin, **weights):
    launch, kept = decode_one_kernel.prepare(model.EPS, cache_k, cache_v, w_cos, w_sin, **weights)
    return {"launch": launch, "kept": kept}


def run(token, position, cache_k, cache_v, w_cos, w_sin, launch, kept, **weights):
    return launch(token, position)
