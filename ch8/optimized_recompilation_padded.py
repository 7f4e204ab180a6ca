"""16 lengths that are padded to two: two static graphs serve all, and each sequence is copied before.

Problem: `baseline_recompilation.py` compiles 8 lengths and runs the other 8 in eager mode.
Idea: a length is rounded up to a multiple of 1024, 3072 or 4096 rows. Rows are independent here, and those beyond the
length are cut off again:

    pad      the sequence is read, zeros are written behind its copy     2 passes
    graph    the copy is read, y written                                 2 passes

Cost: 50,176 rows become 57,344. With 3 of 4 passes over these, a sequence takes 4.4 passes, where a graph of its own
has 2 and eager mode 9. Data that is padded where it is made needs no copy. Where rows are mixed, as in attention or a
mean over them, zeros are no longer harmless: they have to be masked.
Predict: with multiples of 128 instead of 1024, nothing is padded. How many graphs would that take?
"""

import graphs
import torch
import torch.nn.functional as F

CLOCK = "wall"  # issuing operations one by one is a part of the lesson
MULTIPLE = 1024  # rows
TOO_FEW = 2  # rows: a length of 1 is a constant, also where lengths are symbols


def inputs(lengths=16, longest=4096, columns=1024, device="cuda"):  # at most 16 MiB each
    rows = [max(longest - longest * i // (2 * lengths), TOO_FEW) for i in range(lengths)]
    return {"gain": torch.rand(columns, device=device), "xs": [torch.randn(n, columns, device=device) for n in rows]}


def gated(x, gain):
    return F.silu(F.rms_norm(x, x.shape[1:], eps=1e-5) * gain) * x


def padded(x):
    return F.pad(x, (0, 0, 0, -len(x) % MULTIPLE))


def setup(gain, xs):
    compiled = graphs.compiled(gated, gain.is_cuda, (len(xs), *xs[0].shape), dynamic=False)
    for x in xs:
        compiled(padded(x), gain)
    return {"compiled": compiled}


def run(gain, xs, compiled):
    return [compiled(padded(x), gain)[: len(x)] for x in xs]
