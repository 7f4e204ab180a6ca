"""The squares of a matrix, by 8 programs: every 8th row is a program's, and the last block of a row is masked.

`n_rows // programs` rows for each program are 8 * (n_rows // 8) rows in all: up to 7 rows at the end belong to
nobody. With fewer than 8 rows nothing is done at all. The blocks of a row lose up to 63 columns in the same way. A
loop from the program's number to n_rows, in steps of the number of programs, needs no division: it ends where the rows
end. In a row the steps are rounded up, and a mask switches off the lanes beyond it. Odd sizes show such a fault, and
so do sizes below and above each number that is written into the file.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n_rows": 16, "n_cols": 128}, "check/odd": {"n_rows": 19, "n_cols": 133},
    "check/few": {"n_rows": 5, "n_cols": 64}, "check/narrow": {"n_rows": 33, "n_cols": 1},
    "count": {"n_rows": 64, "n_cols": 192}, "default": {"n_rows": 4096, "n_cols": 1024},
}  # fmt: skip


def inputs(n_rows, n_cols, device="cuda"):
    return {"x": torch.randn(n_rows, n_cols, device=device)}


def reference(x):
    return x * x


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


@triton.jit
def square_kernel(x_ptr, y_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        first = tl.cast(row, tl.int64) * n_cols  # may be larger than 2^31
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + first + cols, mask=cols < n_cols)
            tl.store(y_ptr + first + cols, x * x, mask=cols < n_cols)


def run(x):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    square_kernel[(8,)](x, y, n_rows, n_cols, BLOCK=64)
    return y
