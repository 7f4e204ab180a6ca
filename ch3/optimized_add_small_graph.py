"""Add two small matrices by replaying a CUDA graph: one call launches, but two more bring the inputs to it.

Problem: a plain launch asks many questions in Python (`baseline_add_small.py`).

Idea: `setup` captures the kernel, with the addresses that it was given. New inputs lie elsewhere, so they are copied to
where the graph reads. The answer lies where the graph writes, until the next replay; `out` would take a third copy:

    CPU   [copy x][copy y][replay]
    GPU        [copy x]  [copy y]  [add]       768 KiB for the sum, 1024 KiB for the copies

Cost: three calls from Python into C++ instead of one launch, and 2.3 times the bytes. A graph pays where it replaces
many launches (chapter 1), or where its inputs are made in place. Here it replaces one.

Predict: are the three calls together shorter than the one launch of `baseline_add_small.py`?
"""

import torch
import triton
import triton.language as tl

VERSUS = ""
BLOCK = 1024  # elements of a program
WARPS = 4
CLOCK = "wall"  # launching is what is measured
DEVICE = "cuda"


def inputs(rows=256, columns=256, dtype="float32", device="cuda"):
    x, y = (torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    return {"x": x, "y": y, "out": torch.empty_like(x)}


# Compiled once for any addresses and any length: who keeps the compiled kernel need not look at either again
@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr", "y_ptr", "out_ptr"])
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def setup(x, y, out):
    n, a, b, total = x.numel(), x.clone(), y.clone(), torch.empty_like(out)
    grid = (triton.cdiv(n, BLOCK),)
    add_kernel[grid](a, b, total, n, BLOCK=BLOCK, num_warps=WARPS)  # compiles, which may not happen during a capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add_kernel[grid](a, b, total, n, BLOCK=BLOCK, num_warps=WARPS)
    return {"graph": graph, "a": a, "b": b, "total": total}


def run(x, y, out, graph, a, b, total):
    a.copy_(x)
    b.copy_(y)
    graph.replay()
    return total
