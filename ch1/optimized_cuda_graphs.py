"""Forward of a 20-layer MLP at batch 32, one graph replay: all its kernels queued by one launch.

Problem: kernel by kernel, the CPU needs longer to issue a kernel than the GPU needs to run it.

Idea: `setup` runs the forward once while the stream records instead of executing: which kernels, on which addresses, in
which order. `replay` queues the whole record with one call of the driver. The GPU starts each kernel when the one
before has ended:

    CPU  [copy x][replay]
    GPU          [k1][k2][k3] ...

Cost: addresses and shapes are a part of the record. New inputs are copied into the tensor that the graph reads (32 KiB
here), the answer is in the tensor that it writes until the next replay, and another batch size needs another graph.

Predict: the forward is 84 MFLOP: 1.7 us at 50 TFLOP/s. Its 40 kernels still run one after the other, and a kernel with
almost no work keeps the GPU busy for some 5 us. Is the time of one replay nearer to 2 us, to 20 us or to 200 us?
"""

import torch
from toy_mlp import build, parameters

CLOCK = "wall"  # launching is what is measured
DEVICE = "cuda"


def inputs(batch=32, width=256, layers=20, device="cuda"):
    return {"x": torch.randn(batch, width, device=device), **parameters(layers, width, device)}


def setup(x, w_weights, w_biases):
    model = build(w_weights, w_biases)
    static_x = x.clone()
    model(static_x)  # loads the kernels and starts cuBLAS: neither may happen during a capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
    return {"graph": graph, "static_x": static_x, "static_y": static_y}


def run(x, w_weights, w_biases, graph, static_x, static_y):
    static_x.copy_(x)  # the graph reads this address
    graph.replay()
    return static_y
