"""16 lengths in one graph whose length is a symbol: compiled once, and no sequence is copied or runs in eager mode.

Problem: `optimized_recompilation_padded.py` copies each sequence, so that two static graphs are enough.
Idea: in `mark_dynamic(x, 0)` the first dimension is any number. The kernel gets it as an argument, as one that is
written by hand does, and its guard accepts every length but 0 and 1. Columns stay constant, and their loop is unrolled.
Without `dynamic=False` and without the mark, torch.compile does so by itself, at the second length that it sees.

    graph    x is read, y written        2 passes, 16 times

Cost: the least. What a static length would bring (a division by a constant, a mask that is not needed, a tuned grid) is
little in a kernel that waits for memory, and may be more in a product. A CUDA graph cannot be of a length that changes.
Predict: how many times as fast as `optimized_recompilation_padded.py` is it, if memory is the limit?
"""

import graphs
import torch
import torch.nn.functional as F

CLOCK = "wall"  # issuing operations one by one is a part of the lesson
VERSUS = "padded"
TOO_FEW = 2  # rows: a length of 1 is a constant, also where lengths are symbols


def inputs(lengths=16, longest=4096, columns=1024, device="cuda"):  # at most 16 MiB each
    rows = [max(longest - longest * i // (2 * lengths), TOO_FEW) for i in range(lengths)]
    return {"gain": torch.rand(columns, device=device), "xs": [torch.randn(n, columns, device=device) for n in rows]}


def gated(x, gain):
    return F.silu(F.rms_norm(x, x.shape[1:], eps=1e-5) * gain) * x


def setup(gain, xs):
    compiled = graphs.compiled(gated, gain.is_cuda, (len(xs), *xs[0].shape))
    for x in xs:
        torch._dynamo.mark_dynamic(x, 0)
        compiled(x, gain)
    return {"compiled": compiled}


def run(gain, xs, compiled):
    return [compiled(x, gain) for x in xs]
