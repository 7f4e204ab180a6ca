"""16 lengths, a static graph for each: torch.compile gives up after 8, and the other 8 sequences run in eager mode.

Problem: `dynamic=False` makes a graph for exactly one shape, as one reads that static shapes are faster. Guards compare
each call's shape with those of the graphs that exist. Another shape is compiled anew, for seconds, up to 8 times
(`torch._dynamo.config.recompile_limit`). Later ones run operation by operation, with nothing but a warning:

    a graph     norm, gain, SiLU, product: x is read, y written           2 passes
    eager mode  four kernels; the product also reads x once more          9 passes

Cost: 2 passes over the 8 longest sequences, 29,184 rows in all, and 9 over the others, 20,992 rows. This names the
guard that failed, without a GPU, too (in ch8):

    TORCH_LOGS=recompiles python -c "import baseline_recompilation as b; b.setup(**b.inputs(10, 99, 64, 'cpu'))"

Predict: with a graph for all lengths, how many times as fast is a call, if memory is the limit?
"""

import graphs
import torch
import torch.nn.functional as F

SIZES = {
    "check": {"lengths": 3, "longest": 127, "columns": 33},
    "check/limit": {"lengths": 11, "longest": 65, "columns": 7},
    "default": {},
    "cpu": {"lengths": 10, "longest": 4096, "columns": 16},
}
CLOCK = "wall"  # issuing operations one by one is a part of the lesson
TOO_FEW = 2  # rows: a length of 1 is a constant, also where lengths are symbols


def inputs(lengths=16, longest=4096, columns=1024, device="cuda"):  # at most 16 MiB each
    rows = [max(longest - longest * i // (2 * lengths), TOO_FEW) for i in range(lengths)]
    return {"gain": torch.rand(columns, device=device), "xs": [torch.randn(n, columns, device=device) for n in rows]}


def cost(gain, xs):
    return {"dram_bytes": sum(2 * x.nbytes for x in xs)}  # read each, write as much


def gated(x, gain):
    return F.silu(F.rms_norm(x, x.shape[1:], eps=1e-5) * gain) * x


def reference(gain, xs):
    return [gated(x, gain) for x in xs]


def setup(gain, xs):
    compiled = graphs.compiled(gated, gain.is_cuda, (len(xs), *xs[0].shape), dynamic=False)
    for x in xs:
        compiled(x, gain)
    return {"compiled": compiled}


def run(gain, xs, compiled):
    return [compiled(x, gain) for x in xs]
