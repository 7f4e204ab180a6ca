"""Transpose, stack, concatenate or repeat by whole segments and tiles: 16 bytes an access where both sides allow it.

Nothing is computed; elements change their places, and most keep their neighbours:

    stack, cat    a program copies 4 KiB of a row of x or of y, whole: which of the two, it is told once
    broadcast     a program reads 2 KiB of the row once, and writes them into 16 rows
    transpose     a program reads a tile, 256 bytes a side, along its rows and writes it along its columns: what is
                  adjacent for the one is not for the other, so elements change lanes, through shared memory

No lane divides, and no byte is read twice from memory.

Predict before you measure: which of the four comes nearest to a copy? What does `library` do for a transpose?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"op": "cat", "rows": 127, "columns": 129}, "check/one": {"op": "stack", "rows": 1, "columns": 1},
    "check/stack": {"op": "stack", "rows": 33, "columns": 127},
    "check/transpose": {"op": "transpose", "rows": 65, "columns": 127},
    "check/broadcast": {"op": "broadcast", "rows": 67, "columns": 129},
    "check/cat/fp16": {"op": "cat", "rows": 5, "columns": 1031, "dtype": "float16"},
    "check/transpose/bf16": {"op": "transpose", "rows": 131, "columns": 33, "dtype": "bfloat16"},
    "check/broadcast/fp16": {"op": "broadcast", "rows": 3, "columns": 2049, "dtype": "float16"},
    "default": {"op": "cat", "columns": 4096},  # 128 MiB of float32 a matrix, twice that the result: beyond any L2
    "small/transpose": {"op": "transpose", "rows": 512, "columns": 512},
    "small/cat": {"op": "cat", "rows": 512, "columns": 512},
    "medium/transpose": {"op": "transpose", "rows": 2048, "columns": 2048},
    "medium/stack": {"op": "stack", "rows": 2048, "columns": 2048},
    "medium/cat": {"op": "cat", "rows": 2048, "columns": 2048},
    "medium/broadcast": {"op": "broadcast", "rows": 2048, "columns": 2048},
    "large/transpose": {"op": "transpose"}, "large/stack": {"op": "stack"}, "large/cat": {},
    "large/broadcast": {"op": "broadcast"}, "large/transpose/fp16": {"op": "transpose", "dtype": "float16"},
    "large/cat/fp16": {"dtype": "float16"}, "large/broadcast/fp16": {"op": "broadcast", "dtype": "float16"},
    "batch/cat/32x128x768": {"rows": 4096, "columns": 768},  # 32 sequences of 128 tokens
    "batch/transpose/32x128x768": {"op": "transpose", "rows": 4096, "columns": 768},
}  # fmt: skip
PAIRED = ("stack", "cat")  # operations that take two matrices


def inputs(op="cat", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`x` and, of what takes two, `y`: matrices; of a broadcast, the row `x`."""
    x, y = (torch.randn(rows, columns, device=device).to(getattr(torch, dtype)) for _ in range(2))
    x, y = torch.randn(columns, device=device).to(x.dtype) if op == "broadcast" else x, y if op in PAIRED else None
    shape = {"transpose": (columns, rows), "stack": (2, rows, columns), "cat": (rows, 2 * columns)}
    return {"op": op, "x": x, "y": y, "out": torch.empty(shape.get(op, (rows, columns)), dtype=x.dtype, device=device)}


def reference(op, x, y, out):
    return library(op, x, y, torch.empty_like(out))


def library(op, x, y, out):
    if op == "stack":
        return torch.stack((x, y), out=out)
    return torch.cat((x, y), 1, out=out) if op == "cat" else out.copy_(x.t() if op == "transpose" else x)


def cost(op, x, y, out):
    return {"dram_bytes": x.nbytes + (y.nbytes if op in PAIRED else 0) + out.nbytes}  # read what there is, write it all


@triton.jit
def copy_kernel(x_ptr, y_ptr, out_ptr, columns, out_down, out_apart, BLOCK: tl.constexpr):
    across = tl.cdiv(columns, BLOCK)  # programs side by side in a row
    row = (tl.program_id(0) // across).to(tl.int64)  # 64 bits: a matrix may have more than 2^31 elements
    column = (tl.program_id(0) % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    second = tl.program_id(1).to(tl.int64)
    source_ptr = x_ptr if second == 0 else y_ptr
    x = tl.load(source_ptr + row * columns + column, mask=column < columns)
    tl.store(out_ptr + row * out_down + second * out_apart + column, x, mask=column < columns)


@triton.jit
def broadcast_kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    across = tl.cdiv(columns, BLOCK)
    column = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + column, mask=column < columns)
    for i in tl.static_range(ROWS):
        row = (tl.program_id(0) // across).to(tl.int64) * ROWS + i
        tl.store(out_ptr + row * columns + column, x, mask=(row < rows) & (column < columns))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, TILE: tl.constexpr):
    across = tl.cdiv(columns, TILE)
    row = (tl.program_id(0) // across).to(tl.int64) * TILE + tl.arange(0, TILE)
    column = (tl.program_id(0) % across).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(out_ptr + column[:, None] * rows + row[None, :], tl.trans(x), mask=tl.trans(inside))


def run(op, x, y, out):
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    x, y = x.contiguous(), x if y is None else y.contiguous()
    rows, columns = (1, x.numel()) if op == "stack" else (len(out), out.shape[1]) if op == "broadcast" else x.shape
    block = 4096 // x.element_size()  # 128 lanes * 2 * 16 bytes
    if not out.numel():
        return out
    if op == "transpose":
        tile = 256 // x.element_size()  # 16 lanes * 16 bytes
        grid = (triton.cdiv(rows, tile) * triton.cdiv(columns, tile),)
        transpose_kernel[grid](x, out, rows, columns, TILE=tile, num_warps=8)
    elif op == "broadcast":
        grid = (triton.cdiv(rows, 16) * triton.cdiv(columns, block // 2),)
        broadcast_kernel[grid](x, out, rows, columns, ROWS=16, BLOCK=block // 2, num_warps=4)
    else:
        out_down, out_apart = (0, columns) if op == "stack" else (2 * columns, columns)
        grid = (rows * triton.cdiv(columns, block), 2)
        copy_kernel[grid](x, y, out, columns, out_down, out_apart, BLOCK=block, num_warps=4)
    return out
