"""The squared distance of two vectors: each program adds its part to one sum in a step that nothing interrupts.

A load, an addition and a store are three steps. Two programs may both load the old sum before either stores: then one
part is lost. In the interpreter one program ends before the next begins, so every part arrives. `tl.atomic_add` makes
the three steps one. Other right ways give each program an element of its own, and add these up in a second launch: then
no two programs share an element. That also adds in the same order every time.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 5000}, "check/one": {"n": 1}, "check/whole": {"n": 4096}, "check/long": {"n": 10_241},
    "count": {"n": 16_384}, "default": {"n": 16_777_216},
}  # fmt: skip


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device), "y": torch.randn(n, device=device)}


def reference(x, y):
    return ((x - y) * (x - y)).sum().reshape(1)


def cost(x, y):
    return {"dram_bytes": x.nbytes + y.nbytes + 4}  # read x and y, write one number


@triton.jit
def distance_kernel(x_ptr, y_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.atomic_add(total_ptr, tl.sum((x - y) * (x - y), 0))


def run(x, y):
    n = x.numel()
    total = torch.zeros(1, device=x.device)
    distance_kernel[(triton.cdiv(n, 1024),)](x, y, total, n, BLOCK=1024)
    return total
