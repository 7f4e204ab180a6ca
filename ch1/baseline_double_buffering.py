"""Stream 128 MiB through the GPU on one stream: copy in, multiply, copy out, and only one of the three is ever busy.

Problem: each of the 8 chunks is a 2048 x 2048 matrix. Three parts of the GPU could work on three chunks at the same
time, but operations on one stream wait for each other, so their times add up:

    copy engine in    [in 0]                  [in 1]
    multiprocessors         [mm 0]                  [mm 1]
    copy engine out               [out 0]                 [out 1]

Cost: 16 MiB in, 2 * 2048^3 = 17 GFLOP, 16 MiB out. Over a link of 55 GB/s and at 50 TFLOP/s each of the three takes
about 0.3 ms.

Predict: suppose each takes exactly 0.3 ms. Which ratio could overlap reach for these 8 chunks, with as many buffers as
you like?
"""

import torch

CLOCK = "wall"  # the answer lies in host memory: done means that it is there
DEVICE = "cuda"
SIZES = {
    "check": {"chunks": 3, "n": 127},
    "check/one": {"chunks": 1, "n": 1},
    "check/129": {"chunks": 2, "n": 129},
    "check/long": {"chunks": 8, "n": 1024},  # longer steps: one that nobody waits for has not ended so soon
    "count": {"chunks": 4, "n": 256},
    "default": {"chunks": 8, "n": 2048},
}


def inputs(chunks=8, n=2048, device="cuda"):
    x = torch.randn(chunks, n, n, device=device).cpu().pin_memory()  # drawn on the device: a CPU takes longer
    out = torch.empty(chunks, n, n, pin_memory=True)
    return {"x": x, "out": out, "w_weight": torch.randn(n, n, device=device) / n**0.5}


def cost(x, out, w_weight):
    return {"h2d_bytes": x.nbytes, "d2h_bytes": out.nbytes, "fp32_flops": 2 * x.numel() * len(w_weight)}


def setup(x, out, w_weight):
    chunk = torch.empty_like(x[0], device=w_weight.device)
    return {"chunk": chunk, "result": torch.empty_like(chunk)}


def run(x, out, w_weight, chunk, result):
    for i in range(len(x)):
        chunk.copy_(x[i], non_blocking=True)
        torch.mm(chunk, w_weight, out=result)
        out[i].copy_(result, non_blocking=True)
    torch.cuda.current_stream().synchronize()  # `out` is host memory, which no later kernel waits for
    return out
