"""Decode one token in one kernel: its programs meet 110 times, with the next weights on their way into registers.

Problem: each of the 112 kernels of `optimized_decode_dependent.py` is started by the hardware, and its programs load
their first weights when there is room beside those of the kernel in front.
Idea: one kernel whose programs, two on each SM, stay for the whole step (`decode_one_kernel.py`). A cooperative launch
promises that all are resident, so they may wait for each other: each counts itself in when its rows are written, and
asks until all have. Weights depend on nobody: a program loads its first rows of the next product before it waits.

    product   |-- weights, x, sum --|-- arrive, wait --|-- x, sum --|
    next                     |-- weights --                         |-- weights --

Cost: the same bytes in one launch, and 110 meetings.
Predict: assume that a meeting, an addition and a question to L2, takes 0.6 us in all. Each program has asked for two
tiles of the next product by then, 16 KiB each or more. How long does memory need for them at 4.8 TB/s? So what do 110
meetings cost?
"""

import decode_one_kernel
import model
import torch

CLOCK = "wall"  # a token waits for the host, too
TOLERANCE = (0.1, 0.25)  # each layer rounds to 16 bits; of 100,000 errors the largest is several times their RMS
VERSUS = "dependent"
SPILLS = "on capability 8.0 four instructions: attention's products have their operands in registers, beside the tiles"
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
    made = decode_one_kernel.made(cache_k, **weights)
    arguments = made, model.EPS, kept["kept_token"], kept["kept_position"], cache_k, cache_v, w_cos, w_sin
    if token.is_cuda:
        decode_one_kernel.step(*arguments, **weights)  # compiles
        kept["graph"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(kept["graph"]):
            decode_one_kernel.step(*arguments, **weights)
    return {**kept, "made": made}


def run(token, position, cache_k, cache_v, w_cos, w_sin, kept_token, kept_position, graph, made, **weights):
    if graph is None:  # in Triton's interpreter
        return decode_one_kernel.step(made, model.EPS, token, position, cache_k, cache_v, w_cos, w_sin, **weights)
    kept_token.copy_(token)
    kept_position.copy_(position)
    graph.replay()
    return made["logits"]
