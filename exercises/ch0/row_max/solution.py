"""The maximum of each row: masked lanes hold -inf, because max(m, -inf) = m for every m.

A block has a power of two of lanes, so a row of 5 has 3 masked lanes, and tl.max takes all 8. Without `other` their
value is undefined: often 0, which is wrong only if all numbers of the row are negative. Such an error can stay hidden
for long. Zero is wrong here, and so is any finite number, because some rows hold nothing but -inf.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n_rows": 60, "n_cols": 5}, "check/one": {"n_rows": 33, "n_cols": 1},
    "check/ragged": {"n_rows": 7, "n_cols": 1000}, "check/full": {"n_rows": 9, "n_cols": 64},
    "count": {"n_rows": 64, "n_cols": 128}, "default": {"n_rows": 65_536, "n_cols": 1000},
}  # fmt: skip


def inputs(n_rows, n_cols, device="cuda"):
    x = torch.randn(n_rows, n_cols, device=device)
    x[3::8] = float("-inf")  # some rows hold nothing else
    return {"x": x}


def reference(x):
    return x.amax(1)


def cost(x):
    return {"dram_bytes": x.nbytes + 4 * x.shape[0]}  # read x, write a number for each row


@triton.jit
def row_max_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("-inf"))
    tl.store(out_ptr + row, tl.max(x, 0))


def run(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, device=x.device)
    row_max_kernel[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
