"""Forward of a 20-layer MLP at batch 32 by torch.compile(mode="reduce-overhead"): compiled, then one graph replay.

Problem: `optimized_cuda_graphs.py` records and replays by hand: the program has to know which tensor the graph reads,
which one it writes, and that nothing else may run during the recording.

Idea: this mode of torch.compile does the same. The first call compiles the network, the next two run it and record a
graph. Each further call copies x to where the graph reads it, and replays. Other shapes are compiled and recorded anew.

Cost: seconds of compiling, in `setup`. Before each replay Python checks that shapes and types are those that were
compiled for. The answer lies in the graph's memory until the next call, so it is copied (32 KiB) before it is returned.

Predict: the compiler may join operations as well, such as a ReLU with the addition of the bias before it. What can that
save here, where one call launches everything?
"""

import torch
from toy_mlp import build, parameters

CLOCK = "wall"  # launching is what is measured
DEVICE = "cuda"
VERSUS = ""
CALLS = 3  # one compiles, one runs what was compiled, one records it


def inputs(batch=32, width=256, layers=20, device="cuda"):
    return {"x": torch.randn(batch, width, device=device), **parameters(layers, width, device)}


def setup(x, w_weights, w_biases):
    model = torch.compile(build(w_weights, w_biases), mode="reduce-overhead", dynamic=False, fullgraph=True)
    for _ in range(CALLS):
        model(x)
    return {"model": model}


def run(x, w_weights, w_biases, model):
    return model(x).clone()
