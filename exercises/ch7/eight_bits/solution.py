"""Multiply weights of 8 bits by one token's vector: whole rows in registers, loads before the first sum, one launch.

W is half of what 16 bits would be, so half of the time, if the rest keeps up. A program holds 16 rows of up to 8192
bytes, or fewer longer ones: at most 128 KiB, 512 bytes a lane, in 32 loads of 16 bytes. A barrier keeps the loads in
front of the sums (`optimized_gemv_loads_first.py`). Bytes stay bytes, four in a register, until they are multiplied.

The scale of a row is a factor of its whole sum, so it comes last: one product a row instead of K. So does x. `a` is
read by every program, 2 K bytes for 16 K of W, and L2 has it.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 37, "k": 129}, "check/one": {"n": 1, "k": 1}, "check/wide": {"n": 3, "k": 12_304},
    "check/rows": {"n": 130, "k": 64}, "count": {"n": 128, "k": 512}, "default": {"n": 16_384, "k": 8192},
}  # fmt: skip
TILE = 131_072  # bytes of a program: two such tiles are all registers of an SM
LANE = 512  # bytes of a lane: 128 registers of 255


def inputs(n, k, device="cuda"):
    x, a = torch.randn(n, device=device), torch.randn(k, device=device).half()
    scale = 0.01 * (1 + torch.rand(n, device=device)) * k**-0.5
    return {"x": x, "a": a, "scale": scale, "w": torch.randint(-127, 128, (n, k), dtype=torch.int8, device=device)}


def reference(x, a, scale, w):
    return x + scale * (w.to(a.dtype) @ a)


def cost(x, a, scale, w):
    return {"dram_bytes": w.nbytes + a.nbytes + scale.nbytes + 2 * x.nbytes}


@triton.jit
def product_kernel(x_ptr, a_ptr, scale_ptr, w_ptr, y_ptr, N, K, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, cols = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (rows < N)[:, None] & (cols < K)[None, :]
    w = tl.load(w_ptr + rows.to(tl.int64)[:, None] * K + cols[None, :], mask=mask, other=0)
    tl.debug_barrier()  # all of w is asked for before what follows
    a = tl.load(a_ptr + cols, mask=cols < K, other=0.0).to(tl.float32)
    y = tl.sum(w.to(tl.float32) * a[None, :], 1) * tl.load(scale_ptr + rows, mask=rows < N, other=0.0)
    tl.store(y_ptr + rows, tl.load(x_ptr + rows, mask=rows < N, other=0.0) + y, mask=rows < N)


def run(x, a, scale, w):
    y, (n, k) = torch.empty_like(x), w.shape
    block = triton.next_power_of_2(k)
    rows = min(max(TILE // block, 1), 16)
    warps = min(max(rows * block // (32 * LANE), 1), 8)
    product_kernel[(triton.cdiv(n, rows),)](x, a, scale, w, y, n, k, ROWS=rows, BLOCK=block, num_warps=warps)
    return y
