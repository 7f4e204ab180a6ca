"""A linear layer: a program owns 64 x 64 outputs and walks along k, 64 at a time, in both matrices.

`weight` is stored as [n, k], and tl.dot wants a tile [STEP, TILE] of its transpose. Nothing has to be moved for that:
only the offsets change. Element (i, j) of weight.T lies at j * k + i, so `inner` is a column and `cols` is a row.

The products are exact in float32, and so the sum over k is rounded as float32 rounds. In float16 a long sum would lose
most of its digits. The store rounds once. If k is no multiple of 64, the last step has masked lanes in both tiles:
`other=0.0` makes them add nothing.

A tile of 64 x 64 reads 64 + 64 numbers for each step along k and uses each of them 64 times.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"m": 33, "n": 70, "k": 100}, "check/one": {"m": 1, "n": 1, "k": 1},
    "check/long": {"m": 20, "n": 17, "k": 1030}, "check/grid": {"m": 130, "n": 65, "k": 16},
    "count": {"m": 64, "n": 128, "k": 64}, "default": {"m": 4096, "n": 4096, "k": 4096},
}  # fmt: skip


def inputs(m, n, k, device="cuda"):
    x = torch.randn(m, k, device=device, dtype=torch.float16)
    return {"x": x, "weight": torch.randn(n, k, device=device, dtype=torch.float16) / k**0.5}


def reference(x, weight):
    return x @ weight.T


def cost(x, weight):
    (m, k), n = x.shape, weight.shape[0]
    return {"fp16_flops": 2 * m * n * k, "dram_bytes": x.nbytes + weight.nbytes + 2 * m * n}


@triton.jit
def linear_kernel(x_ptr, weight_ptr, out_ptr, m, n, k, TILE: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, STEP):
        inner = start + tl.arange(0, STEP)
        x_mask = (rows < m)[:, None] & (inner < k)[None, :]
        w_mask = (inner < k)[:, None] & (cols < n)[None, :]
        x = tl.load(x_ptr + rows[:, None] * k + inner[None, :], mask=x_mask, other=0.0)
        w = tl.load(weight_ptr + cols[None, :] * k + inner[:, None], mask=w_mask, other=0.0)
        acc += tl.dot(x, w)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=mask)


def run(x, weight):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty(m, n, device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    linear_kernel[grid](x, weight, out, m, n, k, TILE=64, STEP=64)
    return out
