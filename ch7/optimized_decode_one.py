"""Decode one token in one kernel: the weights' stream never waits for a boundary, as there is none.

Problem: a boundary of `optimized_decode_dependent.py` still costs about 1 us, 112 times a token. A kernel that waits
holds in its registers what it has loaded, and no more: once they are full, memory idles until the one in front ends.
Idea: one launch for the whole step, a CTA on each SM. One warp of a CTA only asks for weights, in the order of their
use, up to 192 KiB ahead, through all layers. The others multiply what has come (`decode_one_kernel.py`):

    memory      |-- Wqkv --|-- Wout --|---- Wgate, Wup ----|---- Wdown ----|-- Wqkv of the next layer --
    products         |- qkv -| keys |- out -|     |- gate, up -|    |- down -|

Vectors go from SM to SM as pairs of a number and a tag, which says of which layer it is. Who needs a vector reads it
until all tags are right: no barrier, and one trip through L2. Tensor cores multiply, so that products take a fraction
of the time in which memory delivers the weights, and what was late is made up for.
Cost: the same bytes, one launch. Keys are read from L2 once for each query of a group, from memory once.
Predict: 132 SMs hold 26 MB of weights that nobody has used yet. How long may all products wait before memory idles?
"""

import cupy
import decode_one_kernel
import model
import torch

CLOCK = "wall"  # a token waits for the host, too
TOLERANCE = (0.1, 0.25)  # each layer rounds to 16 bits: of 128,256 logits after 32 layers the farthest is off by 0.15
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
REQUIRES = {"capability": (9, 0)}  # bulk copies to shared memory are Hopper's
SPILLS = "17 warps leave 96 registers a thread; attention, once a layer, keeps keys and values there while it waits"


def inputs(
    hidden=2048, layers=22, heads=32, kv_heads=4, width=64, inner=5632, vocabulary=32_000, context=1024,
    dtype="bfloat16", device="cuda",
):  # fmt: skip
    return model.drawn(hidden, layers, heads, kv_heads, width, inner, vocabulary, context, dtype, device)


def setup(token, position, cache_k, cache_v, w_cos, w_sin, **weights):
    return decode_one_kernel.prepared(cache_k, w_cos, w_sin, model.EPS, **weights)


def run(
    token, position, cache_k, cache_v, w_cos, w_sin, kernel, launch, shared_mem, constant, logits, **weights
):  # fmt: skip
    arguments = tuple(tensor.data_ptr() for tensor in (token, position, cache_k, cache_v, *constant))
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
    kernel(*launch, arguments, shared_mem=shared_mem, stream=stream)
    return logits
