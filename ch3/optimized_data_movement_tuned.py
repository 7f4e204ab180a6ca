"""Four operations that move data, each by a kernel of its own: whole segments, repeated rows, tiles of any type.

Problem: `optimized_data_movement_tiles.py` copies all by tiles of 64 x 64. Where a row stays a row, that is many short
segments; a broadcast reads its row for each tile; and in 16 bits 64 elements are only 128 bytes.

Idea: a kernel for each case, and what it is for:

    stack, cat           a program copies 4 KiB of a row of x or of y, whole: which of the two, it is told once
    short rows           several of them a program
    odd rows             of rows that begin at no multiple of 16 bytes it copies 2 KiB: element by element
    broadcast            a program reads 2 KiB of the row once, and writes them into up to 16 rows
    transpose            a tile is 256 bytes a side in every type: 16 lanes * 16 bytes. Elements change lanes through
                         shared memory, 16 KiB in float32 and 32 KiB in 16 bits
    small transposes     where fewer than half of the SMs would have such a tile, it is 32 x 32 elements

Cost: three kernels, and rules of their sizes. No lane divides, and no byte is read twice from memory.

Predict: `library` is torch.stack, torch.cat and Tensor.copy_ (of a transposed or an expanded view). For which of the
four operations is it far slower than this version?
"""

import torch
import triton
import triton.language as tl

VERSUS = "tiles"
PAIRED = ("stack", "cat")  # operations that take two matrices
SMS = 128  # of most large GPUs, nearly


def inputs(op="cat", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`x` and, of what takes two, `y`: matrices; of a broadcast, the row `x`."""
    x, y = (torch.randn(rows, columns, device=device).to(getattr(torch, dtype)) for _ in range(2))
    x, y = torch.randn(columns, device=device).to(x.dtype) if op == "broadcast" else x, y if op in PAIRED else None
    shape = {"transpose": (columns, rows), "stack": (2, rows, columns), "cat": (rows, 2 * columns)}
    return {"op": op, "x": x, "y": y, "out": torch.empty(shape.get(op, (rows, columns)), dtype=x.dtype, device=device)}


@triton.jit
def copy_kernel(
    x_ptr, y_ptr, out_ptr, n_cols, stride_om, stride_oy, BLOCK: tl.constexpr, n_rows=1, ROWS: tl.constexpr = 1
):  # fmt: skip
    num_pid_n = tl.cdiv(n_cols, BLOCK)  # programs side by side in a row
    row = (tl.program_id(0) // num_pid_n).to(tl.int64)  # 64 bits: a matrix may have more than 2^31 elements
    if ROWS > 1:
        row = row * ROWS + tl.arange(0, ROWS)[:, None]
    cols = (tl.program_id(0) % num_pid_n).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    from_y = tl.program_id(1).to(tl.int64)
    source_ptr = x_ptr if from_y == 0 else y_ptr
    mask = cols < n_cols if ROWS == 1 else (row < n_rows) & (cols < n_cols)
    x = tl.load(source_ptr + row * n_cols + cols, mask=mask)
    tl.store(out_ptr + row * stride_om + from_y * stride_oy + cols, x, mask=mask)


@triton.jit
def broadcast_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    num_pid_n = tl.cdiv(n_cols, BLOCK)
    cols = tl.program_id(0) % num_pid_n * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n_cols)
    for i in tl.static_range(ROWS):
        row = (tl.program_id(0) // num_pid_n).to(tl.int64) * ROWS + i
        tl.store(out_ptr + row * n_cols + cols, x, mask=(row < n_rows) & (cols < n_cols))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_cols, TILE: tl.constexpr):
    num_pid_n = tl.cdiv(n_cols, TILE)
    rows = (tl.program_id(0) // num_pid_n).to(tl.int64) * TILE + tl.arange(0, TILE)
    cols = (tl.program_id(0) % num_pid_n).to(tl.int64) * TILE + tl.arange(0, TILE)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask)
    tl.store(out_ptr + cols[:, None] * n_rows + rows[None, :], tl.trans(x), mask=tl.trans(mask))


def run(op, x, y, out):
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    x, y = x.contiguous(), x if y is None else y.contiguous()
    rows, columns = (1, x.numel()) if op == "stack" else (len(out), out.shape[1]) if op == "broadcast" else x.shape
    block = 4096 // x.element_size()  # 128 lanes * 2 * 16 bytes
    if not out.numel():
        return out
    if op == "transpose":
        tile, warps = 256 // x.element_size(), 8  # 16 lanes * 16 bytes
        if triton.cdiv(rows, tile) * triton.cdiv(columns, tile) < SMS // 2:  # most SMs would have no tile
            tile, warps = 32, 4
        grid = (triton.cdiv(rows, tile) * triton.cdiv(columns, tile),)
        transpose_kernel[grid](x, out, rows, columns, TILE=tile, num_warps=warps)
    elif op == "broadcast":
        height = min(triton.next_power_of_2(rows), 16)
        grid = (triton.cdiv(rows, height) * triton.cdiv(columns, block // 2),)
        broadcast_kernel[grid](x, out, rows, columns, ROWS=height, BLOCK=block // 2, num_warps=4)
    else:
        stride_om, stride_oy = (0, columns) if op == "stack" else (2 * columns, columns)
        is_aligned = columns * x.element_size() % 16 == 0  # else a lane has single elements: half as many of them
        block = block if is_aligned else block // 2
        height = min(max(block // triton.next_power_of_2(columns), 1), triton.next_power_of_2(rows))
        if is_aligned and height == 2:  # two rows a program gain nothing
            height = 1
        width = block // height
        grid = (triton.cdiv(rows, height) * triton.cdiv(columns, width), 2)
        several = {"n_rows": rows, "ROWS": height} if height > 1 else {}
        copy_kernel[grid](x, y, out, columns, stride_om, stride_oy, BLOCK=width, **several, num_warps=4)
    return out
