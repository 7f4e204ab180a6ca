"""Dropout with a seed: the backward pass draws the same numbers again, so 16 bytes an element are moved instead of 18.

Which element stays is a function of the seed and of the element's place. What can be computed again need not be stored:
between the two passes only an integer is kept, where the mask took n bytes for as long as the layers above run.

The backward pass multiplies dy by the same 0 or scale by which the forward pass multiplies x. So it is the same kernel
on another array. It may have other blocks, since a number belongs to a place and not to a program.
"""

import torch
import triton
import triton.language as tl
from given_philox import keep, numbers_for

SIZES = {
    "check": {"n": 2500}, "check/one": {"n": 1, "p": 0.0}, "check/ragged": {"n": 1025, "p": 0.5},
    "count": {"n": 8192}, "default": {"n": 67_108_864},
}  # fmt: skip


def inputs(n, p=0.25, device="cuda"):
    x, dy = torch.randn(n, device=device), torch.randn(n, device=device)
    return {"x": x, "dy": dy, "p": p, "seed": int(torch.randint(2**31, ()))}


def reference(x, dy, p, seed):
    scale = (numbers_for(x, seed) >= int(p * 2**32)).double() / (1 - p)
    return x * scale, dy * scale


def cost(x, dy, p, seed):
    return {"dram_bytes": 4 * x.nbytes}  # read x, write y; read dy, write dx


@triton.jit(do_not_specialize=["seed"])
def dropout_kernel(x_ptr, y_ptr, n, seed, threshold, scale, BLOCK: tl.constexpr):
    block_start = tl.program_id(0) * BLOCK
    offsets = block_start + tl.arange(0, BLOCK)
    stays = keep(block_start, seed, threshold, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * tl.where(stays, scale, 0.0), mask=offsets < n)


def forward(x, p, seed):
    y, n = torch.empty_like(x), x.numel()
    dropout_kernel[(triton.cdiv(n, 1024),)](x, y, n, seed, int(p * 2**32), 1 / (1 - p), BLOCK=1024)
    return y


def backward(dy, p, seed):
    return forward(dy, p, seed)


def run(x, dy, p, seed):
    return forward(x, p, seed), backward(dy, p, seed)
