"""torch.compile in its default mode, as a library to compare with: compiled for each shape, memory order and type."""

from functools import cache

import torch

SHAPES = 64  # of a function, each compiled for itself; PyTorch's own limit is 8, and those of the checks count, too


def compiled(function, like, *fixed, options=()):
    """`function` for tensors such as `like` and `fixed` values; on a CPU as it is: only a GPU's time is of interest.

    `options`: TorchInductor's own, as pairs of a name and a value.
    """
    return _compiled(function, like.shape, like.stride(), like.dtype, not like.is_cuda, options, *fixed)


@cache
def _compiled(function, shape, stride, dtype, disable, options, *fixed):
    torch._dynamo.config.recompile_limit = SHAPES
    return torch.compile(function, dynamic=False, fullgraph=True, disable=disable, options=dict(options) or None)
