"""Many small products of different shapes in one launch: each program looks up which product it belongs to.

One launch has one set of arguments, so what differs between products has to lie in memory: a table with a row for each,
made once. Program (p, t) reads row p, and then computes tile t of product p as a launch for this product alone would.

A grid is a rectangle. It has as many tiles for each product as the largest needs, 9 here. A program without a tile
ends at once: it has read 24 bytes of the table. Padding the matrices instead would compute and load what nobody asked
for. Masks keep each tile inside its matrix, because the next product begins right behind it.
"""

import torch
import triton
import triton.language as tl
from given_ragged import shapes, table_of

SIZES = {
    "check": {"products": 4}, "check/one": {"products": 1}, "check/more": {"products": 7},
    "count": {"products": 5}, "default": {"products": 400},
}  # fmt: skip


def inputs(products, device="cuda"):
    a = torch.randn(sum(m * k for m, _, k in shapes(products)), device=device)
    return {"a": a, "b": torch.randn(sum(k * n for _, n, k in shapes(products)), device=device), "products": products}


def setup(a, b, products):
    return {"table": table_of(products, a.device)}


def reference(a, b, products):
    found, a_start, b_start = [], 0, 0
    for m, n, k in shapes(products):
        left, right = a[a_start : a_start + m * k].view(m, k), b[b_start : b_start + k * n].view(k, n)
        found.append((left @ right).reshape(-1))
        a_start, b_start = a_start + m * k, b_start + k * n
    return torch.cat(found)


def cost(a, b, products):
    out_size = sum(m * n for m, n, _ in shapes(products))
    flops = sum(2 * m * n * k for m, n, k in shapes(products))
    return {"fp32_flops": flops, "dram_bytes": a.nbytes + b.nbytes + 4 * out_size}


@triton.jit
def products_kernel(a_ptr, b_ptr, out_ptr, table_ptr, TILE: tl.constexpr):
    entry = table_ptr + 6 * tl.program_id(0)
    m, n, k = tl.load(entry), tl.load(entry + 1), tl.load(entry + 2)
    a_start, b_start, out_start = tl.load(entry + 3), tl.load(entry + 4), tl.load(entry + 5)
    tile = tl.program_id(1)  # of this product's tiles, row after row
    across = tl.cdiv(n, TILE)
    if tile < tl.cdiv(m, TILE) * across:
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
