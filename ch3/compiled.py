"""torch.compile as a library to be compared with: compiled for each shape and type, as our kernels are, and whole."""

from functools import cache

import torch


def compiled(function, like):
    """`function` for tensors such as `like`; on a CPU as it is, since only a GPU's time is of interest."""
    return _compiled(function, like.shape, like.dtype, not like.is_cuda)


@cache
def _compiled(function, shape, dtype, disable):
    torch._dynamo.reset()  # of one function, no more than 8 kernels are compiled: those of other shapes count
    return torch.compile(function, dynamic=False, fullgraph=True, disable=disable)
