"""Decode one token with dependent launch: a kernel loads its weights while the one in front of it still works.

Problem: from one kernel of `optimized_decode_fused.py` to the next the memory idles: the last programs end, those of
the next kernel start, and their first loads take 0.6 us to arrive. 112 times a token.
Idea: weights do not depend on the kernel in front. With programmatic dependent launch a kernel starts as soon as all
programs of that one have said that it may (`gdc_launch_dependents`, here first thing), where an SM has room. It loads
its weights into registers, and only then waits (`gdc_wait`) until the one in front has ended, and x is there:

    fused       |-- weights, x, sum --|         |-- weights, x, sum --|
    dependent   |-- weights, x, sum --|
                       |-- weights -- wait | x, sum --|

Cost: the same bytes and launches. Programs that wait hold registers: too large a tile leaves no room for both kernels.
Predict: which of a layer's kernels gains least, as it has the fewest bytes to load before it waits?
"""

import decode_kernels
import model
import torch

CLOCK = "wall"  # a token waits for the host, too
TOLERANCE = (0.1, 0.25)  # each layer rounds to 16 bits; of 100,000 errors the largest is several times their RMS
VERSUS = "fused"
STRESS = {
    "arrays with gaps": "a model's own weights are contiguous",
    "arrays with wide gaps": "a model's own weights are contiguous",
    "arrays with gaps in rows": "a model's own weights are contiguous",
    "arrays with gaps in middle axes": "a model's own weights are contiguous",
    "transposed arrays": "a model's own weights are contiguous",
    "expanded arrays": "a model's own weights are contiguous",
}
DEVICE = "cuda"
REQUIRES = {"capability": (9, 0)}  # the instructions are Hopper's


def inputs(
    hidden=2048, layers=22, heads=32, kv_heads=4, width=64, inner=5632, vocabulary=32_000, context=1024,
    dtype="bfloat16", device="cuda",
):  # fmt: skip
    return model.drawn(hidden, layers, heads, kv_heads, width, inner, vocabulary, context, dtype, device)


def setup(token, position, cache_k, cache_v, w_cos, w_sin, **weights):
    kept = {"kept_token": token.clone(), "kept_position": position.clone(), "graph": torch.cuda.CUDAGraph()}
    made = decode_kernels.buffers(cache_k, **weights)
    arguments = (
        made,
        model.EPS,
        token.is_cuda,
        kept["kept_token"],
        kept["kept_position"],
        cache_k,
        cache_v,
        w_cos,
        w_sin,
    )
    decode_kernels.step(*arguments, **weights)  # compiles
    with torch.cuda.graph(kept["graph"]):
        decode_kernels.step(*arguments, **weights)
    return {**kept, "made": made}


def run(token, position, cache_k, cache_v, w_cos, w_sin, kept_token, kept_position, graph, made, **weights):
    kept_token.copy_(token)
    kept_position.copy_(position)
    graph.replay()
    return made["logits"]
