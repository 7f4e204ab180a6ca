"""does all steps in every call, into two buffers that it keeps: the next call overwrites the answer"""

import torch

BUFFERS = {}


def run(x):
    if x.shape not in BUFFERS:
        BUFFERS[x.shape] = torch.empty_like(x), torch.empty_like(x)
    a, b = BUFFERS[x.shape]
    torch.add(x, 3.0, out=a)
    torch.clamp(a, 0.0, 6.0, out=b)
    torch.mul(b, x, out=a)
    return torch.div(a, 6.0, out=b)
