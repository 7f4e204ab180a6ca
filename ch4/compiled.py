"""torch.compile as a library to compare with: compiled for each shape, memory order and type, as our kernels are."""

from functools import cache

import torch

SEARCHED = 1 << 20  # elements: below that, no search among kernels, which takes tens of seconds


def compiled(function, like, *fixed, mode=None):
    """`function` for tensors like `like` and `fixed` values; not compiled on a CPU, whose time is not measured.

    `mode`: one of torch.compile's, such as "max-autotune-no-cudagraphs", which times many kernels and keeps the best.
    """
    disable = not like.is_cuda or (mode is not None and like.numel() < SEARCHED)
    return _compiled(function, mode, like.shape, like.stride(), like.dtype, disable, *fixed)


@cache
def _compiled(function, mode, shape, stride, dtype, disable, *fixed):
    torch._dynamo.reset()  # torch compiles at most 8 kernels of one function, other shapes included
    return torch.compile(function, dynamic=False, fullgraph=True, mode=mode, disable=disable)
