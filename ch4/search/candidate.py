"""The product with one configuration, as the engine measures it: measure.py appends CONFIGURATION and SIZES to a copy.

It is measured as an optimized version of a pair is; the baseline is the same file with the default configuration.
"""

import gemm
import torch
from torch.nn import functional

CONFIGURATION = gemm.DEFAULT


def inputs(m, n, k, dtype, activation, device="cuda"):
    a, b = (torch.randn(*shape, device=device).to(getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    return {"a": a, "b": b, "activation": activation}


def reference(a, b, activation):
    return a @ b if activation == "none" else getattr(functional, activation)(a @ b, inplace=True)


def library(a, b, activation):
    return reference(a, b, activation)  # what one would call instead: two operations, or one


def cost(a, b, activation):
    flops = "fp16_flops" if a.dtype == torch.float16 else "bf16_flops"
    written = a.shape[0] * b.shape[1] * a.element_size()
    return {flops: 2 * a.shape[0] * b.numel(), "dram_bytes": a.nbytes + b.nbytes + written}


def run(a, b, activation):
    return gemm.matmul(a, b, CONFIGURATION, activation)
