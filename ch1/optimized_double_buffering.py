"""Stream 128 MiB through the GPU on two streams with a buffer each: while one chunk is multiplied, another is copied.

Problem: on one stream, two of the three parts (copy in, multiply, copy out) are idle at any time.

Idea: even chunks take one stream and its buffers, odd chunks the other. Within a stream everything waits its turn, so
that a buffer is free before it is filled again. Between the streams nothing waits:

    stream 0   [in 0][mm 0][out 0][in 2][mm 2][out 2]
    stream 1         [in 1][mm 1][out 1][in 3][mm 3][out 3]

At any time the two streams use different parts of the GPU. Events tie them to the caller's stream: both start after
what it queued before, and it goes on after both.

Cost: a second pair of buffers, 32 MiB.

Predict: suppose each of the three steps takes 0.3 ms. How long do the 8 chunks take with two buffers?
"""

import torch

CLOCK = "wall"  # the answer lies in host memory: done means that it is there
DEVICE = "cuda"


def inputs(chunks=8, n=2048, device="cuda"):
    x = torch.randn(chunks, n, n, device=device).cpu().pin_memory()  # drawn on the device: a CPU takes longer
    out = torch.empty(chunks, n, n, pin_memory=True)
    return {"x": x, "out": out, "w_weight": torch.randn(n, n, device=device) / n**0.5}


def setup(x, out, w_weight):
    chunk = [torch.empty_like(x[0], device=w_weight.device) for _ in range(2)]
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    return {"chunk": chunk, "result": [torch.empty_like(buffer) for buffer in chunk], "streams": streams}


def run(x, out, w_weight, chunk, result, streams):
    begin = torch.cuda.current_stream().record_event()
    for stream in streams:
        stream.wait_event(begin)
    for i in range(len(x)):
        with torch.cuda.stream(streams[i % 2]):
            chunk[i % 2].copy_(x[i], non_blocking=True)
            torch.mm(chunk[i % 2], w_weight, out=result[i % 2])
            out[i].copy_(result[i % 2], non_blocking=True)
    for stream in streams:
        torch.cuda.current_stream().wait_event(stream.record_event())
    torch.cuda.current_stream().synchronize()  # `out` is host memory, which no later kernel waits for
    return out
