"""The matrices of this chapter: drawn in any memory order, and counted."""

import torch

FLOPS = {torch.float16: "fp16_flops", torch.bfloat16: "bf16_flops", torch.float32: "fp32_flops"}


def operand(rows, columns, dtype, is_transposed, device):
    """A random matrix [rows, columns], contiguous by rows (by columns, if transposed)."""
    down, across = (columns, rows) if is_transposed else (rows, columns)
    x = torch.randn(down, across, device=device).to(getattr(torch, dtype))
    return x.T if is_transposed else x


def product_cost(a, b):
    """The least work of a @ b: a multiply-add for each row of a, column of b and k; a, b read, a @ b written."""
    flops = 2 * a.numel() * b.shape[1]
    return {FLOPS[a.dtype]: flops, "dram_bytes": a.nbytes + b.nbytes + a.shape[0] * b.shape[1] * a.element_size()}
