"""The kernel of the pair `add_small`, in which only the way to its launch differs: the sum of two vectors."""

import triton
import triton.language as tl

BLOCK = 1024  # elements of a program
WARPS = 4


# Compiled once for any addresses and any length: whoever keeps the compiled kernel need not look at either again.
@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr", "y_ptr", "out_ptr"])
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)
