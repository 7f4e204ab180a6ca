"""Softmax of any shape: rows in registers, in part from registers and in part from L2, or shared by programs.

Problem: each of the three lessons is the fastest at some shapes and slow at others. `registers` has one row a program
however short it is; `online` reads a long row twice though registers could hold a part; `split` waits for its first
launch.

Idea: a rule chooses one of three kernels, each with what it lacks as a lesson. What for:

    up to 16,384 columns    one pass. Of 256 columns a warp takes two rows: of one, each lane would make only two loads;
                            of 289, too: one row fills little more than half of a block of 512
    longer rows             the first 16,384 elements stay in registers; only the rest is read again, soon enough for L2
                            to have it: 132 SMs * 192 KiB = 25 MiB at 65,536 columns of float32. Loads say so: what is
                            to be read again is to leave L2 last (`evict_last`), all else first. Each thread keeps a
                            maximum and a sum of its own, so no block of the row waits for another
    few rows of more than   are shared. From capability 9.0 on, the second launch's programs start early (PDL), load
    8192 columns, no more   their piece of x, and wait only then. A piece has at most 16,384 elements: beyond 16 Mi
    than a quarter of the   columns a row has more pieces
    SMs

Cost: 2 elements moved for each one, up to 0.75 more from L2 for long rows, 1 more for shared ones. Three kernels.

Predict: at which of these shapes does the rule not matter much, since two kernels are nearly as fast: 4096 x 16384,
4096 x 65536, 8 x 152064?
"""

import torch
import triton
import triton.language as tl
from launches import cdiv, launch, next_power_of_2

VERSUS = "split"
WARPS = 32  # at most: one program then fills an SM
ELEMENTS = 16  # of the row that a thread holds, of the 64 registers that each of 1024 has
PIECE = 2048  # elements of a piece, at least: 4 warps, 16 elements a thread
PIECES = 1024  # of a row: longer pieces rather than more, since each program reads two numbers of each piece
LARGEST = 16_384  # elements of a piece, at most: 1024 threads


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    return {"x": torch.randn(rows, columns, device=device).to(getattr(torch, dtype))}


@triton.jit
def rows_kernel(x_ptr, y_ptr, n_rows, n_cols: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    row_start = rows.to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=float("-inf")).to(tl.float32)
    exp = tl.exp(x - tl.max(x, 1, keep_dims=True))
    tl.store(y_ptr + row_start + cols, exp * (1 / tl.sum(exp, 1, keep_dims=True)), mask=mask)


@triton.jit
def held_kernel(x_ptr, y_ptr, n_cols, HELD: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    held_cols = tl.arange(0, HELD)
    held = tl.load(
        x_ptr + row_start + held_cols, mask=held_cols < n_cols, other=float("-inf"), eviction_policy="evict_first"
    )
    cols = tl.arange(0, BLOCK // VECTOR)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]
    acc_max = tl.full((BLOCK // VECTOR,), float("-inf"), tl.float32)  # each thread's own, for the elements of one load
    acc_sum = tl.zeros((BLOCK // VECTOR,), tl.float32)
    for off in range(HELD, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, other=float("-inf"), eviction_policy="evict_last")
        old_max, acc_max = acc_max, tl.maximum(acc_max, tl.max(x, 1).to(tl.float32))
        # -inf alone adds nothing, and -inf - -inf would be NaN
        safe_max = tl.where(acc_max == float("-inf"), 0.0, acc_max)
        exp = tl.exp(x.to(tl.float32) - safe_max[:, None])
        acc_sum = acc_sum * tl.exp(old_max - safe_max) + tl.sum(exp, 1)
    held = held.to(tl.float32)
    row_max = tl.maximum(tl.max(acc_max, 0), tl.max(held, 0))
    exp = tl.exp(held - row_max)
    scale = 1 / (tl.sum(acc_sum * tl.exp(acc_max - row_max), 0) + tl.sum(exp, 0))
    tl.store(y_ptr + row_start + held_cols, exp * scale, mask=held_cols < n_cols, eviction_policy="evict_first")
    for off in range(HELD, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        tl.store(y_ptr + row_start + off + cols, tl.exp(x - row_max) * scale, mask=mask, eviction_policy="evict_first")


@triton.jit
def pieces_kernel(x_ptr, max_ptr, sum_ptr, n_cols, pieces, PIECE: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()  # the second launch's programs may come to the SMs
    row, piece = tl.program_id(0) // pieces, tl.program_id(0) % pieces
    cols = piece.to(tl.int64) * PIECE + tl.arange(0, PIECE)  # 64 bits: a tensor may have more than 2^31 elements
    ptrs = x_ptr + row.to(tl.int64) * n_cols + cols
    x = tl.load(ptrs, mask=cols < n_cols, other=float("-inf"), eviction_policy="evict_last").to(tl.float32)
    piece_max = tl.max(x, 0)
    safe_max = tl.where(piece_max == float("-inf"), 0.0, piece_max)  # -inf - -inf would be NaN
    tl.store(max_ptr + tl.program_id(0), piece_max)
    tl.store(sum_ptr + tl.program_id(0), tl.sum(tl.exp(x - safe_max), 0))


@triton.jit
def shared_kernel(
    x_ptr, max_ptr, sum_ptr, y_ptr, n_cols, pieces, PIECE: tl.constexpr, BLOCK: tl.constexpr, OVERLAP: tl.constexpr
):
    row, piece = tl.program_id(0) // pieces, tl.program_id(0) % pieces
    cols = piece.to(tl.int64) * PIECE + tl.arange(0, PIECE)
    row_start = row.to(tl.int64) * n_cols
    x = tl.load(x_ptr + row_start + cols, mask=cols < n_cols, eviction_policy="evict_first").to(tl.float32)
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until all programs of the first launch have written
    all_pieces = tl.arange(0, BLOCK)  # beyond the row's pieces: -inf and 0, which add nothing
    maxima = tl.load(max_ptr + row * pieces + all_pieces, mask=all_pieces < pieces, other=float("-inf"))
    sums = tl.load(sum_ptr + row * pieces + all_pieces, mask=all_pieces < pieces, other=0.0)
    row_max = tl.max(maxima, 0)
    scale = 1 / tl.sum(sums * tl.exp(maxima - row_max), 0)
    tl.store(y_ptr + row_start + cols, tl.exp(x - row_max) * scale, mask=cols < n_cols)


def share(x, y, overlap):
    rows, columns = x.shape
    piece = min(max(next_power_of_2(cdiv(columns, PIECES)), PIECE), LARGEST)
    pieces, warps = cdiv(columns, piece), piece // 512  # 16 elements a thread
    maxima, sums = torch.empty(2, rows * pieces, device=x.device)
    launch(pieces_kernel, (rows * pieces,), x, maxima, sums, columns, pieces, piece, overlap, num_warps=warps)
    block = next_power_of_2(pieces)
    pdl = {"launch_pdl": True} if overlap else {}
    constants, options = (piece, block, overlap), {"num_warps": warps, **pdl}
    launch(shared_kernel, (rows * pieces,), x, maxima, sums, y, columns, pieces, *constants, **options)


def setup(x):
    gpu = torch.cuda.get_device_properties(x.device) if x.is_cuda else None
    return {"overlap": gpu is not None and gpu.major >= 9, "sms": gpu.multi_processor_count if gpu else 4}


def run(x, overlap, sms):
    x = x.contiguous()
    y, (rows, columns) = torch.empty_like(x), x.shape
    if not y.numel():
        return y
    block, held = next_power_of_2(columns), WARPS * 32 * ELEMENTS
    if columns > 8192 and rows <= sms // 4:
        share(x, y, overlap)
    elif columns > held:
        vector = 16 // x.element_size()
        launch(held_kernel, (rows,), x, y, columns, HELD=held, BLOCK=held // 2, VECTOR=vector, num_warps=WARPS)
    else:
        rows_at_once = next_power_of_2(cdiv(24 * ELEMENTS, columns))  # 12 elements a thread, or more
        warps, grid = min(max(block // (32 * ELEMENTS), 1), WARPS), (cdiv(rows, rows_at_once),)
        launch(rows_kernel, grid, x, y, rows, columns, ROWS=rows_at_once, BLOCK=block, num_warps=warps)
    return y
