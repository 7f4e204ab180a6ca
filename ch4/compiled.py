"""torch.compile as a library to be compared with: for each shape, order in memory and type, as our kernels are."""

from functools import cache

import torch

SEARCHED = 1 << 20  # elements from which on a search among kernels, some tens of seconds, is made: smaller is no lesson


def compiled(function, like, *fixed, mode=None):
    """`function` for tensors such as `like` and `fixed` values; on a CPU as it is: only a GPU's time is of interest.

    `mode`: one of torch.compile's, such as "max-autotune-no-cudagraphs", which times many kernels and keeps the best.
    """
    disable = not like.is_cuda or (mode is not None and like.numel() < SEARCHED)
    return _compiled(function, mode, like.shape, like.stride(), like.dtype, disable, *fixed)


@cache
def _compiled(function, mode, shape, stride, dtype, disable, *fixed):
    torch._dynamo.reset()  # of one function, no more than 8 kernels are compiled: those of other shapes count
    return torch.compile(function, dynamic=False, fullgraph=True, mode=mode, disable=disable)
