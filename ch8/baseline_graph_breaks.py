"""An update of 16 tensors whose `if` asks for a tensor's value: 16 times the host and the GPU wait for each other.

Problem: a step that is too large is scaled down. torch.compile cannot put Python's `if` on a tensor into a graph. It
ends a graph before the `if`, runs the `if` in Python, and begins another graph behind it (a *graph break*):

    host   graph 1 |     waits      | if | graph 2 | graph 1 |     waits ...
    GPU            | step and norm  |    idle      | update  | idle | step and norm

With `fullgraph=True` a break is an error. This names the line, without a GPU, too (in ch8):

    TORCH_LOGS=graph_breaks python -c "import baseline_graph_breaks as b; b.setup(**b.inputs(2, 99, 'cpu'))"

Cost: a tensor of 4 MiB is moved 6 times: m and v read, the step written; the step and w read, the result written. That
is 24 MiB, 6 to 24 us at 1 to 4 TB/s. A break costs a copy of one number to the host, and two launches that cannot be
issued before.
Predict: `optimized_graph_breaks.py` moves as many bytes, without a break. What does a tensor's update wait for then?
"""

import graphs
import torch

SIZES = {
    "check": {"tensors": 3, "n": 127},
    "check/one": {"tensors": 1, "n": 1},
    "default": {},
    "cpu": {"tensors": 16, "n": 1000},
}
CLOCK = "wall"  # what the host waits for is the lesson


def inputs(tensors=16, n=1_048_576, device="cuda"):
    scale = 4 ** (torch.rand(tensors, 1, device=device) - 0.4)  # of some steps the norm is above 1
    m, v, w = (torch.randn(tensors, n, device=device) for _ in range(3))
    return {"m": m * scale, "v": v.square() + 1, "w": w}


def reference(m, v, w):
    step = m / v.sqrt()
    return w - 0.01 * step / step.square().mean(1, keepdim=True).sqrt().clamp(min=1)


def cost(m, v, w):
    return {"dram_bytes": m.nbytes + v.nbytes + 2 * w.nbytes}  # read three, write one


def update(m, v, w):
    step = m / v.sqrt()
    norm = step.square().mean().sqrt()
    if norm > 1:  # Python has to know
        step = step / norm
    return w - 0.01 * step


def setup(m, v, w):
    compiled = graphs.compiled(update, m.is_cuda, m.shape)
    for size in (0, 1e3):  # both ways of the `if`
        compiled(size * m[0], v[0], w[0])
    return {"compiled": compiled}


def run(m, v, w, compiled):
    return torch.stack([compiled(*tensors) for tensors in zip(m, v, w, strict=True)])
