"""The matrices of this chapter: drawn in any memory order, counted, and copied where a descriptor needs it."""

import torch

FLOPS = {torch.float16: "fp16_flops", torch.bfloat16: "bf16_flops", torch.float32: "fp32_flops"}


def operand(rows, columns, dtype, is_transposed, step, device):
    """A random matrix [rows, columns]. Neighbours in a row (in a column, if transposed) are `step` elements apart."""
    down, across = (columns, rows) if is_transposed else (rows, columns)
    x = torch.randn(down, across * step, device=device).to(getattr(torch, dtype))[:, ::step]
    return x.T if is_transposed else x


def product_cost(a, b):
    """The least work of a @ b: a multiply-add for each row of a, column of b and k; a, b read, a @ b written."""
    flops = 2 * a.numel() * b.shape[1]
    return {FLOPS[a.dtype]: flops, "dram_bytes": a.nbytes + b.nbytes + a.shape[0] * b.shape[1] * a.element_size()}


def describable(x):
    """(x, False) or (x.T, True) if its rows are contiguous and begin at multiples of 16 bytes; else (a copy, False).

    x: [rows, columns], neither of them 0. A copy reads and writes x. An odd number of 16-bit columns needs one.
    """
    unit = 16 // x.element_size()
    for y, is_transposed in ((x, False), (x.T, True)):
        if y.stride(1) == 1 and y.stride(0) % unit == 0 and y.stride(0) >= y.shape[1] and y.data_ptr() % 16 == 0:
            return y, is_transposed
    return padded(x, *x.shape).copy_(x), False


def padded(like, rows, columns):
    """An empty matrix [rows, columns] of like's type. Rows begin at multiples of 16 bytes, with gaps where needed."""
    unit = 16 // like.element_size()
    width = -(-columns // unit) * unit
    return torch.empty(rows, width, dtype=like.dtype, device=like.device)[:, :columns]
