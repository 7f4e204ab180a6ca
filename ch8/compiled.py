"""torch.compile as a library to compare with: compiled for each shape, memory order and type, as our kernels are.

Every chapter that needs it has this text: a chapter imports from itself alone.
"""

from functools import cache

import torch

AUTOTUNE_MIN = 1 << 20  # elements: below that, no search among kernels, which takes tens of seconds
MAX_SHAPES = 64  # of a function, each compiled separately; PyTorch's own limit is 8, and then it raises an error


def compiled(function, like, *fixed, mode=None, options=()):
    """`function` for tensors such as `like` and `fixed` values; on a CPU as it is: only a GPU's time is of interest.

    `mode`: one of torch.compile's, such as "max-autotune-no-cudagraphs", which times many kernels and keeps the best.
    `options`: TorchInductor's own, as pairs of a name and a value.
    """
    disable = not like.is_cuda or (mode is not None and like.numel() < AUTOTUNE_MIN)
    return _compiled(function, mode, options, like.shape, like.stride(), like.dtype, disable, *fixed)


@cache
def _compiled(function, mode, options, shape, stride, dtype, disable, *fixed):
    torch._dynamo.config.recompile_limit = MAX_SHAPES  # not reset(): another function's code would be compiled again
    how = {"mode": mode, "options": dict(options) or None, "disable": disable}
    return torch.compile(function, dynamic=False, fullgraph=True, **how)
