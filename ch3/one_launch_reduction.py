"""Reductions in one launch: a program loads all that it reduces, whole columns or whole rows, before it adds."""

import torch
import triton
import triton.language as tl
from launches import cdiv, launch, next_power_of_2
from reduction_ops import EMPTY, alone, finish

SMS = 128  # of most large GPUs, nearly
HELD = 8192  # columns of a row that a program's registers hold


@triton.jit
def held_rows_kernel(
    x_ptr, out_ptr, n_rows, n_cols, scale, other,
    OP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, OVERLAP: tl.constexpr = False,
):  # fmt: skip
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until all programs of the launch before have written
    rows = tl.arange(0, BLOCK_M).to(tl.int64)[:, None]  # 64 bits: there may be 2^31 elements
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < n_rows) & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows * n_cols + cols[None, :], mask=mask, other=other, eviction_policy="evict_first")
    tl.store(out_ptr + cols, finish(*alone(x.to(tl.float32), OP), scale, OP), mask=cols < n_cols)


@triton.jit
def held_columns_kernel(
    x_ptr, out_ptr, n_rows, n_cols: tl.constexpr, scale, other,
    OP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # 64 bits: there may be 2^31 rows
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows)[:, None] & (cols < n_cols)
    x = tl.load(x_ptr + (rows * n_cols)[:, None] + cols, mask=mask, other=other, eviction_policy="evict_first")
    tl.store(out_ptr + rows, finish(*alone(x.to(tl.float32), OP), scale, OP, 1), mask=rows < n_rows)


def held_rows(op, x, scale, dtype, overlap=False):
    """Over the rows: a program holds all rows of a few columns. overlap: it may start before the last launch ends."""
    (n_rows, n_cols), block_m = x.shape, next_power_of_2(max(len(x), 1))
    few = n_rows <= 256
    least = min(max(1024 // block_m, 8 if few else 4), 128)
    most = min(max(16384 // block_m, 16), 32768 // block_m, 1024)  # with 8 or 16 warps, 64 elements a lane
    block_n = min(max(next_power_of_2(n_cols) // (8 * SMS if few else SMS), least), most)
    programs = cdiv(n_cols, block_n)
    # Warps hide the time of loads, but wait for each other at the end: many only where there are few programs
    warps = min(max(block_m * block_n // (512 if programs <= 2 * SMS else 2048), 4), 16)
    out = torch.empty(n_cols, dtype=dtype, device=x.device)
    pdl = {"OVERLAP": True, "launch_pdl": True} if overlap else {}
    constants, options = (op, block_m, block_n), {"num_warps": warps, **pdl}
    launch(held_rows_kernel, (programs,), x, out, n_rows, n_cols, scale, EMPTY[op][1], *constants, **options)
    return out


def held_columns(op, x, scale, dtype):
    """Over the columns. A program holds a row, or several short ones where there are many."""
    out, block = torch.empty(len(x), dtype=dtype, device=x.device), next_power_of_2(x.shape[1])
    rows = next_power_of_2(cdiv(384, x.shape[1]))  # so that a program has 384 elements or more, but
    rows = min(rows, max(next_power_of_2(len(x)) // (4 * SMS), 1))  # no fewer programs than two to four an SM
    # Bytes of a row. Logsumexp's warps wait for each other twice, so it has fewer: one for 512 elements of float32, or
    # for 2048 of 16 bits, as measured on an H200
    a_warp = 8192 // x.element_size() if op == "logsumexp" else 1024
    warps = min(max(block * x.element_size() // a_warp, 1), 16)
    grid, constants = (cdiv(len(x), rows),), (op, rows, block)
    launch(held_columns_kernel, grid, x, out, *x.shape, scale, EMPTY[op][1], *constants, num_warps=warps)
    return out
