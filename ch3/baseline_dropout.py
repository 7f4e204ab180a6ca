"""Drop elements at random and keep a mask for the backward pass: a byte an element, written once and read once.

Problem: dropout sets each element to zero with probability p and scales the others by 1 / (1 - p). Its backward pass
must do the same to the same elements of the gradient. So the forward pass stores which elements stay:

    forward     reads x, writes y and the mask     4 + 4 + 1 bytes an element of float32, 2 + 2 + 1 of float16
    backward    reads dy and the mask, writes dx   4 + 1 + 4                              2 + 1 + 2

The random numbers are Philox's, a function of a seed and a counter: no state, four numbers of 32 bits a counter.

Cost: two bytes more an element than the useful minimum. Between the two passes, for as long as the layers above take,
the mask occupies memory: 64 MiB at 8192 x 8192, for each such layer.

Predict: `optimized_dropout.py` stores no mask. How many times fewer bytes does it move in float32, and in float16?
"""

import torch
import triton
import triton.language as tl
from philox import keep, numbers_for

SIZES = {
    "check": {"rows": 33, "columns": 67}, "check/one": {"rows": 1, "columns": 3, "p": 0.0},
    "check/row": {"rows": 1, "columns": 1025, "p": 0.9}, "check/fp16": {"rows": 33, "columns": 127, "dtype": "float16"},
    "check/bf16": {"rows": 5, "columns": 513, "dtype": "bfloat16"},
    "count": {"rows": 64, "columns": 1024},
    "default": {"rows": 8192, "columns": 8192},  # 256 MiB of float32 a matrix: larger than any L2
    "large/8192x8192/fp16": {"dtype": "float16"},
}  # fmt: skip
LIBRARY_DIFFERS = "draws other random numbers"


def inputs(rows=8192, columns=8192, p=0.1, dtype="float32", device="cuda"):
    x, dy = (torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    return {"x": x, "dy": dy, "p": p, "seed": int(torch.randint(2**31, ()))}


def reference(x, dy, p, seed):
    scale = (numbers_for(x, seed) >= int(p * 2**32)).double() / (1 - p)
    return x * scale, dy * scale


def library(x, dy, p, seed):
    y, mask = torch.native_dropout(x, p, train=True)
    return y, torch.ops.aten.native_dropout_backward(dy, mask, 1 / (1 - p))


def cost(x, dy, p, seed):
    return {"dram_bytes": 4 * x.nbytes}  # read x, write y; read dy, write dx


@triton.jit(do_not_specialize=["seed"])  # another seed is no reason to compile again
def dropout_kernel(x_ptr, y_ptr, x_keep_ptr, n, seed, threshold, scale, BLOCK: tl.constexpr):
    block_start = tl.program_id(0).to(tl.int64) * BLOCK  # 64 bits: n may exceed 2^31
    offsets = block_start + tl.arange(0, BLOCK)
    mask = offsets < n
    x_keep = keep(block_start, seed, threshold, BLOCK)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(x_keep_ptr + offsets, x_keep, mask=mask)
    tl.store(y_ptr + offsets, x * tl.where(x_keep, scale, 0.0), mask=mask)


@triton.jit
def backward_kernel(dy_ptr, dx_ptr, x_keep_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x_keep = tl.load(x_keep_ptr + offsets, mask=mask)
    dy = tl.load(dy_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(dx_ptr + offsets, dy * tl.where(x_keep, scale, 0.0), mask=mask)


def run(x, dy, p, seed):
    x, dy, n = x.contiguous(), dy.contiguous(), x.numel()
    y, dx, x_keep = torch.empty_like(x), torch.empty_like(dy), torch.empty_like(x, dtype=torch.bool)
    block = 2048 // x.element_size()  # 128 lanes * 16 bytes
    grid, threshold, scale = (triton.cdiv(n, block),), int(p * 2**32), 1 / (1 - p) if p < 1 else 0.0
    dropout_kernel[grid](x, y, x_keep, n, seed, threshold, scale, BLOCK=block, num_warps=4)
    backward_kernel[grid](dy, dx, x_keep, n, scale, BLOCK=block, num_warps=4)
    return y, dx
