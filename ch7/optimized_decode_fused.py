"""Decode one token in five Triton kernels a layer: norms, rotations, SwiGLU and sums ride on the reads of weights.

Problem: of the kernels of `optimized_decode_graph.py` four a layer read weights. The others, about fifty, work on
vectors of some KiB, and each costs a start and an end.
Idea: what needs a whole vector goes to the kernel that reads it: each program of a product normalizes x itself (4 KiB
from L2, for 32 KiB of weights); what needs one element is done where it is made (`decode_kernels.py`):

    project    norm, product                       attend    rotation, new row of the cache, attention, merge
    add        product, sum with x                 gate_up   norm, two products, SwiGLU

A program holds whole rows of weights in registers, 2 to 8 of them: all of its loads are in flight at once.
Cost: 112 launches for 22 layers. x stays float32: no sum is rounded on its way from layer to layer.
Predict: assume that a boundary between two kernels costs 2 us. How much do 112 cost beside 0.44 ms of reads?
"""

import decode_kernels
import model
import torch

CLOCK = "wall"  # a token waits for the host, too
TOLERANCE = (0.1, 0.25)  # each layer rounds to 16 bits; of 100,000 errors the largest is several times their RMS
VERSUS = "graph"
STRESS = {
    "arrays with gaps": "a model's own weights are contiguous",
    "arrays with wide gaps": "a model's own weights are contiguous",
    "arrays with gaps in rows": "a model's own weights are contiguous",
    "arrays with gaps in middle axes": "a model's own weights are contiguous",
    "transposed arrays": "a model's own weights are contiguous",
    "expanded arrays": "a model's own weights are contiguous",
}


def inputs(
    hidden=2048, layers=22, heads=32, kv_heads=4, width=64, inner=5632, vocabulary=32_000, context=1024,
    dtype="bfloat16", device="cuda",
):  # fmt: skip
    return model.drawn(hidden, layers, heads, kv_heads, width, inner, vocabulary, context, dtype, device)


def setup(token, position, cache_k, cache_v, w_cos, w_sin, **weights):
    kept = {"kept_token": token.clone(), "kept_position": position.clone(), "graph": None}
    made = decode_kernels.buffers(cache_k, **weights)
    arguments = made, model.EPS, False, kept["kept_token"], kept["kept_position"], cache_k, cache_v, w_cos, w_sin
    if token.is_cuda:
        decode_kernels.step(*arguments, **weights)  # compiles
        kept["graph"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(kept["graph"]):
            decode_kernels.step(*arguments, **weights)
    return {**kept, "made": made}


def run(token, position, cache_k, cache_v, w_cos, w_sin, kept_token, kept_position, graph, made, **weights):
    if graph is None:  # in Triton's interpreter
        return decode_kernels.step(made, model.EPS, False, token, position, cache_k, cache_v, w_cos, w_sin, **weights)
    kept_token.copy_(token)
    kept_position.copy_(position)
    graph.replay()
    return made["logits"]
