"""Dropout with a stored mask: the forward pass writes a byte for each element, and the backward pass reads it.

Yours: the kernels, `forward` and `backward`, and what the one hands to the other. Given: `inputs`, and given_philox.py.
`keep(block_start, seed, threshold, BLOCK)` of that file says which of BLOCK elements from `block_start` on stay.
"""

import torch
import triton
import triton.language as tl
from given_philox import keep


def inputs(n, p=0.25, device="cuda"):
    x, dy = torch.randn(n, device=device), torch.randn(n, device=device)
    return {"x": x, "dy": dy, "p": p, "seed": int(torch.randint(2**31, ()))}


@triton.jit(do_not_specialize=["seed"])
def forward_kernel(x_ptr, y_ptr, mask_ptr, n, seed, threshold, scale, BLOCK: tl.constexpr):
    block_start = tl.program_id(0) * BLOCK
    offsets = block_start + tl.arange(0, BLOCK)
    stays = keep(block_start, seed, threshold, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(mask_ptr + offsets, stays, mask=offsets < n)
    tl.store(y_ptr + offsets, x * tl.where(stays, scale, 0.0), mask=offsets < n)


@triton.jit
def backward_kernel(dy_ptr, dx_ptr, mask_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    stays = tl.load(mask_ptr + offsets, mask=offsets < n)
    dy = tl.load(dy_ptr + offsets, mask=offsets < n)
    tl.store(dx_ptr + offsets, dy * tl.where(stays, scale, 0.0), mask=offsets < n)


def forward(x, p, seed):
    y, n = torch.empty_like(x), x.numel()
    mask = torch.empty_like(x, dtype=torch.bool)
    forward_kernel[(triton.cdiv(n, 1024),)](x, y, mask, n, seed, int(p * 2**32), 1 / (1 - p), BLOCK=1024)
    return y, mask


def backward(dy, mask, p):
    dx, n = torch.empty_like(dy), dy.numel()
    backward_kernel[(triton.cdiv(n, 1024),)](dy, dx, mask, n, 1 / (1 - p), BLOCK=1024)
    return dx


def run(x, dy, p, seed):
    y, mask = forward(x, p, seed)
    return y, backward(dy, mask, p)
