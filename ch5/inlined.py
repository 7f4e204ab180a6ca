"""torch.compile once more, told to compute again rather than to keep.

TorchInductor keeps in memory what takes more than 4 reads or 30 operations to compute (torch/_inductor/config.py), lest
much be computed twice. A blade of a product of multivectors reads more: 8 others in 2D, 16 in 3D.
"""

from functools import cache

import torch
from compiled import SHAPES

THRESHOLDS = ("realize_reads_threshold", "realize_opcount_threshold", "realize_acc_reads_threshold")
NEVER = 1_000_000


def inlined(function, like, *fixed):
    """`function` for tensors such as `like` and `fixed` values; on a CPU as it is: only a GPU's time is of interest."""
    return _inlined(function, like.shape, like.stride(), like.dtype, not like.is_cuda, *fixed)


@cache
def _inlined(function, shape, stride, dtype, disable, *fixed):
    torch._dynamo.config.recompile_limit = SHAPES
    options = dict.fromkeys(THRESHOLDS, NEVER)
    return torch.compile(function, dynamic=False, fullgraph=True, disable=disable, options=options)
