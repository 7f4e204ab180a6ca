"""Many small products of different shapes, one launch each: the GPU waits for the next launch.

Yours: the kernel and `run` (and `setup`, if you need another table). Given: `inputs`, and the file given_ragged.py with
`shapes(products)`, a list of (m, n, k), and `table_of`, whose rows are m, n, k and the three places where the product's
matrices begin.
"""

import torch
import triton
import triton.language as tl
from given_ragged import shapes, table_of


def inputs(products, device="cuda"):
    a = torch.randn(sum(m * k for m, _, k in shapes(products)), device=device)
    return {"a": a, "b": torch.randn(sum(k * n for _, n, k in shapes(products)), device=device), "products": products}


def setup(a, b, products):
    return {"table": table_of(products, a.device)}


@triton.jit
def products_kernel(a_ptr, b_ptr, out_ptr, table_ptr, TILE: tl.constexpr):
    entry = table_ptr + 6 * tl.program_id(0)
    m, n, k = tl.load(entry), tl.load(entry + 1), tl.load(entry + 2)
    a_start, b_start, out_start = tl.load(entry + 3), tl.load(entry + 4), tl.load(entry + 5)
    tile = tl.program_id(1)  # of this product's tiles, row after row
    across = tl.cdiv(n, TILE)
    rows = tile // across * TILE + tl.arange(0, TILE)
    cols = tile % across * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, TILE):
        inner = start + tl.arange(0, TILE)
        a_mask = (rows < m)[:, None] & (inner < k)[None, :]
        b_mask = (inner < k)[:, None] & (cols < n)[None, :]
        a = tl.load(a_ptr + a_start + rows[:, None] * k + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + b_start + inner[:, None] * n + cols[None, :], mask=b_mask, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + out_start + rows[:, None] * n + cols[None, :], acc, mask=mask)


def run(a, b, products, table):
    out = torch.empty(sum(m * n for m, n, _ in shapes(products)), device=a.device)
    most = max(triton.cdiv(m, 32) * triton.cdiv(n, 32) for m, n, _ in shapes(products))
    products_kernel[(products, most)](a, b, out, table, TILE=32)
    return out
