"""One idea for four operations that move data: a lane moves one element, found by division, 4 bytes an access.

Problem: transpose, stack, concatenate and repeat compute nothing; elements change their places. A lane takes one place
in the result and computes where its element comes from:

    transpose    out[i, j] = x[j, i]            lanes that write side by side read `columns` elements apart
    stack        out[0] = x, out[1] = y         each lane asks which of the two its element is from
    cat          out[i] = x[i], then y[i]       the same, along a row
    broadcast    out[i] = x                     a row, read again for each row of the result

One kernel serves all four, since OP is known when it is compiled.

Cost: the useful minimum is to read each input once and to write the result once. Memory arrives in sectors of 32 bytes,
and a sector is read whole, whatever part of it a load asks for.

Predict: which of the four uses only a part of each sector that it reads, and how many times as many sectors as the
minimum does it move, reads and writes together, if no cache keeps anything?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"op": "cat", "rows": 67, "columns": 129},
    "check/stack": {"op": "stack", "rows": 33, "columns": 67},
    "check/transpose": {"op": "transpose", "rows": 65, "columns": 67},
    "check/broadcast": {"op": "broadcast", "rows": 67, "columns": 129},
    "check/transpose/bf16": {"op": "transpose", "rows": 131, "columns": 3, "dtype": "bfloat16"},
    "check/tuned/cat/short": {"op": "cat", "rows": 67, "columns": 4},  # many rows a program
    "check/tuned/cat/fp16": {"op": "cat", "rows": 5, "columns": 1031, "dtype": "float16"},
    "check/tuned/transpose/large tiles": {"op": "transpose", "rows": 3, "columns": 4033},  # 64 of them
    "check/tuned/broadcast/fp16": {"op": "broadcast", "rows": 3, "columns": 2049, "dtype": "float16"},
    "count": {"op": "transpose", "rows": 256, "columns": 256},
    "default": {"op": "cat", "columns": 4096},  # 128 MiB of float32 a matrix, twice that the result: beyond any L2
    "large/transpose": {"op": "transpose"}, "large/stack": {"op": "stack"}, "large/broadcast": {"op": "broadcast"},
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
def move_kernel(x_ptr, y_ptr, out_ptr, n, n_rows, n_cols, OP: tl.constexpr, INDEX: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    if OP == "transpose":
        in_offsets = (offsets % n_rows).to(tl.int64) * n_cols + offsets // n_rows
    elif OP == "stack":
        in_offsets = offsets % (n // 2)
    elif OP == "cat":
        in_offsets = (offsets // (2 * n_cols)).to(tl.int64) * n_cols + offsets % n_cols
    else:
        in_offsets = offsets % n_cols
    if OP == "stack" or OP == "cat":
        from_y = offsets >= n // 2 if OP == "stack" else offsets % (2 * n_cols) >= n_cols
        x = tl.where(
            from_y, tl.load(y_ptr + in_offsets, mask=mask & from_y), tl.load(x_ptr + in_offsets, mask=mask & ~from_y)
        )
    else:
        x = tl.load(x_ptr + in_offsets, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def run(op, x, y, out):
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    x, y = x.contiguous(), x if y is None else y.contiguous()
    (*_, rows, columns), n = (1, *x.shape), out.numel()
    index = tl.int32 if n <= 2**30 else tl.int64  # 64 bits where 32 could overflow: dividing them takes much longer
    if n:
        move_kernel[(triton.cdiv(n, 128),)](x, y, out, n, rows, columns, OP=op, INDEX=index, BLOCK=128, num_warps=4)
    return out
