"""One idea for four operations that move data: each is a copy of tiles, from rows and columns to others, by strides.

Problem: `baseline_data_movement.py` divides for every element, and its transpose reads a sector for 4 bytes.

Idea: an operation is where element (i, j) of x is read and written, in steps along rows and columns, the strides. One
kernel copies tiles of 64 x 64. It divides to find its tile, once a program and for no element:

    transpose    reads with strides (1, rows' length), writes with (rows' length, 1). Lanes are side by side on both
                 sides: the compiler moves the elements to other lanes in between, through shared memory
    stack        a third index chooses x or y, and where in the result it begins
    cat          the same; a row of the result is two rows long
    broadcast    a row stride of 0 reads the same row again

Cost: the bytes of x, y and the result, once, but for a broadcast: each tile reads its part of the row again, from L2.

Predict: the baseline has 128 elements a program, this version 4096. Which of the two saves more for cat, where both
sides are adjacent in the baseline, too: having fewer programs, or dividing for no element?
"""

import torch
import triton
import triton.language as tl

PAIRED = ("stack", "cat")  # operations that take two matrices
TILE = 64  # elements a side: 256 bytes of float32


def inputs(op="cat", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`x` and, of what takes two, `y`: matrices; of a broadcast, the row `x`."""
    x, y = (torch.randn(rows, columns, device=device).to(getattr(torch, dtype)) for _ in range(2))
    x, y = torch.randn(columns, device=device).to(x.dtype) if op == "broadcast" else x, y if op in PAIRED else None
    shape = {"transpose": (columns, rows), "stack": (2, rows, columns), "cat": (rows, 2 * columns)}
    return {"op": op, "x": x, "y": y, "out": torch.empty(shape.get(op, (rows, columns)), dtype=x.dtype, device=device)}


@triton.jit
def move_kernel(x_ptr, y_ptr, out_ptr, n_rows, n_cols, stride_xm, stride_xn, stride_om, stride_oy, TILE: tl.constexpr):
    num_pid_n = tl.cdiv(n_cols, TILE)
    rows = (tl.program_id(0) // num_pid_n).to(tl.int64) * TILE + tl.arange(0, TILE)[:, None]  # 64 bits: times a stride
    cols = (tl.program_id(0) % num_pid_n).to(tl.int64) * TILE + tl.arange(0, TILE)[None, :]
    from_y = tl.program_id(1).to(tl.int64)
    source_ptr = x_ptr if from_y == 0 else y_ptr
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(source_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    tl.store(out_ptr + from_y * stride_oy + rows * stride_om + cols, x, mask=mask)


def run(op, x, y, out):
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    x, y = x.contiguous(), x if y is None else y.contiguous()
    rows, columns = x.shape if op in PAIRED else out.shape  # of what is copied, as it lies in the result
    stride_xm, stride_xn = {"transpose": (1, rows), "broadcast": (0, 1)}.get(op, (columns, 1))
    stride_om, stride_oy = {"stack": (columns, rows * columns), "cat": (2 * columns, columns)}.get(op, (columns, 0))
    if out.numel():
        grid = (triton.cdiv(rows, TILE) * triton.cdiv(columns, TILE), 2 if op in PAIRED else 1)
        move_kernel[grid](x, y, out, rows, columns, stride_xm, stride_xn, stride_om, stride_oy, TILE=TILE, num_warps=4)
    return out
