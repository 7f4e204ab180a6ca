"""The matrices that this chapter multiplies: drawn in any order in memory, counted, and made fit for descriptors."""

import torch

FLOPS = {torch.float16: "fp16_flops", torch.bfloat16: "bf16_flops", torch.float32: "fp32_flops"}


def operand(rows, columns, dtype, is_transposed, step, device):
    """A random matrix [rows, columns]; `step` is the distance of neighbours in memory, along columns if transposed."""
    down, across = (columns, rows) if is_transposed else (rows, columns)
    x = torch.randn(down, across * step, device=device).to(getattr(torch, dtype))[:, ::step]
    return x.T if is_transposed else x


def product_cost(a, b):
    """The least work of a @ b: a multiply-add for each row of a, column of b and k; both read, the product written."""
    flops = 2 * a.numel() * b.shape[1]
    return {FLOPS[a.dtype]: flops, "dram_bytes": a.nbytes + b.nbytes + a.shape[0] * b.shape[1] * a.element_size()}


def describable(x):
    """(x, False) or (x.T, True), whichever has its rows side by side at multiples of 16 bytes; else (a copy, False).

    x: [rows, columns], neither of them 0. A copy costs a read and a write of x; odd columns of 16-bit numbers need one.
    """
    unit = 16 // x.element_size()
    for y, is_transposed in ((x, False), (x.T, True)):
        if y.stride(1) == 1 and y.stride(0) % unit == 0 and y.stride(0) >= y.shape[1] and y.data_ptr() % 16 == 0:
            return y, is_transposed
    return padded(x, *x.shape).copy_(x), False


def padded(like, rows, columns):
    """An empty matrix [rows, columns] of a type, its rows at multiples of 16 bytes: contiguous where that allows it."""
    unit = 16 // like.element_size()
    width = -(-columns // unit) * unit
    return torch.empty(rows, width, dtype=like.dtype, device=like.device)[:, :columns]
