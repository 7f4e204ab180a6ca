"""torch.compile for the pairs about graphs: compiled on a GPU, traced only on a CPU.

On a CPU a graph's operations run one by one (backend="eager"): TorchInductor and a C++ compiler would take long.
Breaks, guards and recompilations are the same there, and TORCH_LOGS=graph_breaks,recompiles shows them.
"""

from functools import cache
from types import FunctionType

import torch


@cache
def compiled(function, on_gpu, sizes, **how):
    """`function`, compiled; for other `sizes` another copy, since PyTorch counts recompilations of each code object."""
    code = function.__code__.replace()
    copy = FunctionType(code, function.__globals__, function.__name__)
    return torch.compile(copy, backend="inductor" if on_gpu else "eager", **how)
