"""The sum of each column: a lane adds up its own column in a register, and 512 rows become one atomic addition.

The lanes of a load lie along a row, so every byte of its sectors is used. A tile of 16 rows and 128 columns gives each
of 128 threads 16 elements: four loads of 16 bytes that do not wait for each other. Until the end of the strip no thread
needs the values of another one. Then the 16 rows of `acc` are added up within the program, and 128 sums go to L2.

A strip of 512 rows costs 2 sectors for each 8 columns, beside the 512 that it loads. Longer strips have fewer atomic
additions, and leave fewer programs to share the matrix. The additions come in any order, so the last digits can differ
from run to run. If they must not, store a row of sums for each strip, and add up these rows with a second launch.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"rows": 1100, "columns": 37}, "check/one": {"rows": 1, "columns": 1},
    "check/wide": {"rows": 3, "columns": 1025}, "check/long": {"rows": 4099, "columns": 5},
    "count": {"rows": 2048, "columns": 64}, "default": {"rows": 65_536, "columns": 1024},
}  # fmt: skip


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


def reference(x):
    return x.sum(0)


def cost(x):
    return {"dram_bytes": x.nbytes + 4 * x.shape[1]}


@triton.jit
def columns_kernel(x_ptr, out_ptr, rows, columns, STRIP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    first = tl.program_id(1) * STRIP
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, STRIP, ROWS):
        row = first + start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        acc += tl.load(x_ptr + row[:, None].to(tl.int64) * columns + column[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + column, tl.sum(acc, 0), mask=column < columns)


def run(x):
    rows, columns = x.shape
    out = torch.zeros(columns, device=x.device)
    grid = (triton.cdiv(columns, 128), triton.cdiv(rows, 512))
    columns_kernel[grid](x, out, rows, columns, STRIP=512, ROWS=16, COLUMNS=128)
    return out
