"""Softmax of few long rows: several programs share a row, and a second launch puts together what they found.

Problem: in `optimized_softmax_online.py` one program computes a row, so one SM does. The softmax for the next token of
a language model is a single row, of 128,256 columns for one vocabulary: all other SMs are idle. With eight rows, eight
SMs work.

Idea: a row is cut into pieces of 2048 or more elements, a program for each. Maximum and sum of a row follow from those
of its pieces:

    first launch     the piece's maximum and its sum of exp(x - maximum): two numbers, written to memory
    second launch    row maximum = the largest maximum
                     row sum     = the sum over all pieces of sum * exp(maximum - row maximum)
                     result      = exp(x - row maximum) / row sum, of one piece

Each program of the second launch reads the numbers of all pieces of its row (63 pieces at 128,256 columns) and computes
the row's maximum and sum itself: so there is no third launch.

Cost: 3 elements moved for each one instead of 2. L2 has the second read only if all rows fit into it together. Short
rows pay for the second launch. With many more rows than SMs all SMs have work anyway, and the second read only costs
time.

Predict: at 64 bytes a clock, how long does one SM take to read a row of a million elements of float32? How many times
faster than `online` is this version for four such rows?
"""

import torch
import triton
import triton.language as tl

VERSUS = "online"
PIECE = 2048  # elements of a piece, at least: 4 warps, 16 elements a thread
PIECES = 1024  # of a row: longer pieces rather than more, since each program reads two numbers of each piece


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    return {"x": torch.randn(rows, columns, device=device).to(getattr(torch, dtype))}


@triton.jit
def pieces_kernel(x_ptr, max_ptr, sum_ptr, n_cols, pieces, PIECE: tl.constexpr):
    row, piece = tl.program_id(0) // pieces, tl.program_id(0) % pieces
    cols = piece.to(tl.int64) * PIECE + tl.arange(0, PIECE)  # 64 bits: a tensor may have more than 2^31 elements
    ptrs = x_ptr + row.to(tl.int64) * n_cols + cols
    x = tl.load(ptrs, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
    piece_max = tl.max(x, 0)
    safe_max = tl.where(piece_max == float("-inf"), 0.0, piece_max)  # -inf - -inf would be NaN
    tl.store(max_ptr + tl.program_id(0), piece_max)
    tl.store(sum_ptr + tl.program_id(0), tl.sum(tl.exp(x - safe_max), 0))


@triton.jit
def softmax_kernel(x_ptr, max_ptr, sum_ptr, y_ptr, n_cols, pieces, PIECE: tl.constexpr, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0) // pieces, tl.program_id(0) % pieces
    all_pieces = tl.arange(0, BLOCK)  # beyond the row's pieces: -inf and 0, which add nothing
    maxima = tl.load(max_ptr + row * pieces + all_pieces, mask=all_pieces < pieces, other=float("-inf"))
    sums = tl.load(sum_ptr + row * pieces + all_pieces, mask=all_pieces < pieces, other=0.0)
    row_max = tl.max(maxima, 0)
    scale = 1 / tl.sum(sums * tl.exp(maxima - row_max), 0)
    cols = piece.to(tl.int64) * PIECE + tl.arange(0, PIECE)
    row_start = row.to(tl.int64) * n_cols
    x = tl.load(x_ptr + row_start + cols, mask=cols < n_cols).to(tl.float32)
    tl.store(y_ptr + row_start + cols, tl.exp(x - row_max) * scale, mask=cols < n_cols)


def run(x):
    x = x.contiguous()
    y, (rows, columns) = torch.empty_like(x), x.shape
    if y.numel():
        piece = max(triton.next_power_of_2(triton.cdiv(columns, PIECES)), PIECE)
        pieces, warps = triton.cdiv(columns, piece), min(piece // 512, 32)  # 16 elements a thread
        maxima, sums = torch.empty(2, rows * pieces, device=x.device)
        pieces_kernel[(rows * pieces,)](x, maxima, sums, columns, pieces, PIECE=piece, num_warps=warps)
        block = triton.next_power_of_2(pieces)
        softmax_kernel[(rows * pieces,)](x, maxima, sums, y, columns, pieces, PIECE=piece, BLOCK=block, num_warps=warps)
    return y
