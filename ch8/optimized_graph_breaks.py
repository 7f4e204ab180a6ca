"""An update of 16 tensors in one graph each: the condition stays on the GPU, and the host issues ahead of it.

Problem: in `baseline_graph_breaks.py` Python's `if` needs a number, so the host waits for the GPU at each tensor.
Idea: `torch.where` chooses on the GPU. No value leaves it, and `fullgraph=True` proves that nothing breaks:

    host   graph | graph | graph | graph ...
    GPU          | step and norm, update | step and norm, update | ...

Cost: the same bytes: m and v are read for the norm, then m, v and w for the update, which computes the step again. Both
ways of the `if` are computed, here a division that memory hides. Where one way is a large product, an `if` may be worth
its wait.
Predict: up to which size of a tensor does the GPU wait for the host even so, if a call of the graph takes it 40 us?
"""

import graphs
import torch

CLOCK = "wall"  # what the host waits for is the lesson


def inputs(tensors=16, n=1_048_576, device="cuda"):
    scale = 4 ** (torch.rand(tensors, 1, device=device) - 0.4)  # of some steps the norm is above 1
    m, v, w = (torch.randn(tensors, n, device=device) for _ in range(3))
    return {"m": m * scale, "v": v.square() + 1, "w": w}


def update(m, v, w):
    step = m / v.sqrt()
    norm = step.square().mean().sqrt()
    step = torch.where(norm > 1, step / norm, step)
    return w - 0.01 * step


def setup(m, v, w):
    compiled = graphs.compiled(update, m.is_cuda, m.shape, fullgraph=True)
    compiled(m[0], v[0], w[0])
    return {"compiled": compiled}


def run(m, v, w, compiled):
    return torch.stack([compiled(*tensors) for tensors in zip(m, v, w, strict=True)])
