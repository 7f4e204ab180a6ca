"""torch.compile, in its default mode, as a library to be compared with: for each shape and type, as our kernels are."""

from functools import cache

import torch


def compiled(function, like, *fixed):
    """`function` for tensors such as `like` and `fixed` values; on a CPU as it is: only a GPU's time is of interest."""
    return _compiled(function, like.shape, like.dtype, not like.is_cuda, *fixed)


@cache
def _compiled(function, shape, dtype, disable, *fixed):
    torch._dynamo.reset()  # of one function, no more than 8 kernels are compiled: those of other shapes count
    return torch.compile(function, dynamic=False, fullgraph=True, disable=disable)
