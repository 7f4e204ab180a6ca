"""Copies of matrices whose rows begin anywhere: TMA and 16-byte copies need rows at multiples of 16 bytes."""

import torch
import triton
import triton.language as tl
from rows import odd

TILE = 64  # `even` rounds up to multiples of it


def describable(x):
    """(y, is_transposed): x, or x.T, as a matrix whose rows are contiguous and begin at multiples of 16 bytes.

    x: [rows, columns], neither of them 0. It is copied where it is no such matrix: one read and one write of x. An odd
    number of 16-bit columns needs that.
    """
    is_transposed = x.stride(1) > x.stride(0)
    y = x.T if is_transposed else x
    is_whole = y.stride(1) == 1 and y.stride(0) % (16 // x.element_size()) == 0 and y.stride(0) >= y.shape[1]
    return (y if is_whole and y.data_ptr() % 16 == 0 else copied(y, padded(y, *y.shape))), is_transposed


def padded(like, rows, columns):
    """An empty matrix [rows, columns] of like's type, with gaps between its rows if those would begin off 16 bytes.

    Then they begin at multiples of 128 bytes, a line of L2: TMA fetches a block in parts of 128 bytes, and each part
    that lies across two lines costs two requests.
    """
    unit, line = 16 // like.element_size(), 128 // like.element_size()
    width = columns if columns % unit == 0 else -(-columns // line) * line
    return torch.empty(rows, width, dtype=like.dtype, device=like.device)[:, :columns]


def close(x):
    """x without gaps between its rows: itself, or a copy."""
    return x if x.is_contiguous() else copied(x, torch.empty(*x.shape, dtype=x.dtype, device=x.device))


def even(a, b):
    """a [m, k] and b [k, n]; if rows of one begin anywhere, copies of both whose m, k, n are multiples of 64.

    What a copy has beyond its matrix is 0, and adds nothing to a product.
    """
    return tuple(map(_rounded, (a, b))) if odd(a, *a.stride()) or odd(b, *b.stride()) else (a, b)


def _rounded(x):
    is_transposed = x.stride(1) > x.stride(0)
    y = x.T if is_transposed else x
    rows, columns = (-(-length // TILE) * TILE for length in y.shape)
    y = copied(y, torch.empty(rows, columns, dtype=x.dtype, device=x.device))
    return y.T if is_transposed else y


@triton.jit
def copy_kernel(x_ptr, y_ptr, M, N, stride_xm, stride_xn, rows, stride_ym, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    offs_m = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    offs_n = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]).to(tl.int64)
    x_ptrs = x_ptr + offs_m * stride_xm + offs_n * stride_xn
    x = tl.load(x_ptrs, mask=(offs_m < M) & (offs_n < N), other=0.0)
    # The gap is written too: a mask that ends at a multiple of 16 bytes lets a thread store 16 bytes at once
    tl.store(y_ptr + offs_m * stride_ym + offs_n, x, mask=(offs_m < rows) & (offs_n < stride_ym))


def copied(x, y):
    """y, after x was copied to its beginning. x: [m, n]. y: at least as large, its rows contiguous; its rest becomes 0.

    torch's copy_ moves single elements at half of the memory's speed here: it asks where each of them lies.
    """
    height, width = 4, 512
    grid = (triton.cdiv(y.shape[0], height), triton.cdiv(y.stride(0), width))
    if y.numel():
        copy_kernel[grid](x, y, *x.shape, *x.stride(), y.shape[0], y.stride(0), ROWS=height, BLOCK=width, num_warps=4)
    return y
