"""Copies of matrices for kernels that need rows at multiples of 16 bytes, as TMA does."""

import torch
import triton
import triton.language as tl

LINE = 128  # bytes of a line of L2


def describable(x):
    """(y, is_transposed): x, or x.T, as a matrix whose rows are contiguous and begin at multiples of 16 bytes.

    x: [rows, columns], neither of them 0. It is copied where it is no such matrix, as with an odd number of columns.
    """
    y, is_transposed = _lying(x)
    return aligned(y), is_transposed


def aligned(x):
    """x, or a copy of it: as TMA needs them, rows are contiguous and begin at multiples of 16 bytes."""
    is_whole = x.stride(1) == 1 and x.stride(0) % (16 // x.element_size()) == 0 and x.stride(0) >= x.shape[1]
    return x if is_whole and x.data_ptr() % 16 == 0 else copied(x, _in_lines(x, *x.shape))[:, : x.shape[1]]


def padded(like, rows, columns):
    """An empty matrix [rows, columns] of like's type, with gaps between its rows if those would begin off 16 bytes."""
    if columns * like.element_size() % 16:
        return _in_lines(like, rows, columns)[:, :columns]
    return torch.empty(rows, columns, dtype=like.dtype, device=like.device)


def in_lines(*matrices):
    """Do all rows of a matrix begin at the same place in a line?"""
    return all(x.stride(0) * x.element_size() % LINE == 0 for x in matrices)


def close(x):
    """x without gaps between its rows: itself, or a copy."""
    return x if x.is_contiguous() else copied(x, torch.empty(*x.shape, dtype=x.dtype, device=x.device))


def _lying(x):
    """(y, is_transposed): x, or x.T, such that neighbours in a row are nearer in memory than those in a column."""
    is_transposed = x.stride(1) > x.stride(0)
    return (x.T if is_transposed else x), is_transposed


def _in_lines(like, rows, columns):
    """An empty matrix whose rows begin at multiples of 128 bytes; of 16, if they are shorter than that.

    TMA fetches a row of a block in parts of 128 bytes. Where rows begin off 128 bytes, a part lies across two lines.
    """
    step = (LINE if columns * like.element_size() > LINE else 16) // like.element_size()
    return torch.empty(rows, -(-columns // step) * step, dtype=like.dtype, device=like.device)


@triton.jit
def copy_kernel(x_ptr, y_ptr, M, N, stride_xm, stride_xn, rows, stride_ym, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    blocks = tl.cdiv(stride_ym, BLOCK)
    offs_m = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    offs_n = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    x_ptrs = x_ptr + offs_m * stride_xm + offs_n * stride_xn
    x = tl.load(x_ptrs, mask=(offs_m < M) & (offs_n < N), other=0.0)
    # The gap is written too: a mask that ends at a multiple of 16 bytes lets a thread store 16 bytes at once
    tl.store(y_ptr + offs_m * stride_ym + offs_n, x, mask=(offs_m < rows) & (offs_n < stride_ym))


def copied(x, y):
    """y, after x was copied to its beginning. x: [m, n]. y: at least as large, contiguous; its rest becomes 0.

    In place of torch's copy_: it copies and sets the rest to 0 in one pass.
    """
    height, width = 4, 512
    grid = (triton.cdiv(y.shape[0], height) * triton.cdiv(y.shape[1], width),)
    if y.numel():
        copy_kernel[grid](x, y, *x.shape, *x.stride(), *y.shape, ROWS=height, BLOCK=width, num_warps=4)
    return y
