"""Count what RMS norm of every row costs: as six operations of torch, and as one kernel.

Yours: the six functions at the end. `chain` and `fused` are what is counted; changing them here changes nothing.
`x` is float32 [rows, columns], `w_weight` float32 [columns]; `columns` is a multiple of 8.
"""

import torch
import triton
import triton.language as tl


def chain(x, w_weight):
    squares = torch.square(x)
    mean = squares.mean(1, keepdim=True)
    shifted = mean + 1e-5
    scale = torch.rsqrt(shifted)
    scaled = x * scale
    return scaled * w_weight


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + cols, mask=mask)
    scale = tl.rsqrt(tl.sum(x * x, 0) / n_cols + 1e-5)
    tl.store(y_ptr + row * n_cols + cols, x * scale * weight, mask=mask)


def fused(x, w_weight):
    rows, columns = x.shape
    y = torch.empty_like(x)
    rms_norm_kernel[(rows,)](x, w_weight, y, columns, BLOCK=triton.next_power_of_2(columns))
    return y


def chain_launches(rows, columns):
    return 0  # yours: launches of `chain`


def chain_requested_bytes(rows, columns):
    return 0  # yours: bytes that the operations of `chain` read and write, all together


def chain_allocated_bytes(rows, columns):
    return 0  # yours: bytes of all new arrays of `chain`


def fused_requested_bytes(rows, columns):
    return 0  # yours: bytes that the lanes of `fused` load and store, all programs together


def fused_distinct_bytes(rows, columns):
    return 0  # yours: bytes that `fused` loads and stores, each different byte once


def fused_masked(rows, columns):
    return 0  # yours: masked lanes of all loads and stores of `fused`, all programs together
