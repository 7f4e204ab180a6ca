"""Drop elements at random and keep a seed for the backward pass: it draws the same numbers again, and stores none.

Problem: the mask of `baseline_dropout.py` is written, kept and read, and holds nothing that could not be computed.

Idea: Philox's numbers are a function of a seed and a counter. So the backward pass is the forward pass's kernel, on dy:

    forward     reads x, writes y      4 + 4 bytes an element of float32, 2 + 2 of float16
    backward    reads dy, writes dx    the same

Between the two passes only an integer is kept.

Cost: arithmetic, ten rounds of two products of 32 by 32 bits for a counter. A counter gives four numbers, and they
serve four elements. (A kernel that asks for one number at a time throws three of four away.)

    4 numbers   10 rounds * 6 instructions    15 an element, 22 to 24 with all else (--xray); 9 of them are products of
                                              integers, which start at half the rate of others: they count twice
    memory      has time for 56 an element of float32 and 28 of float16, by an H200's datasheet: 4.8 TB/s, 67 TFLOP/s

Predict: is the whole ratio of the bytes won, 18 / 16 in float32 and 10 / 8 in float16?
"""

import torch
import triton
import triton.language as tl
from philox import keep


def inputs(rows=8192, columns=8192, p=0.1, dtype="float32", device="cuda"):
    x, dy = (torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    return {"x": x, "dy": dy, "p": p, "seed": int(torch.randint(2**31, ()))}


@triton.jit(do_not_specialize=["seed"])  # another seed is no reason to compile again
def dropout_kernel(x_ptr, y_ptr, n, seed, threshold, scale, BLOCK: tl.constexpr):
    block_start = tl.program_id(0).to(tl.int64) * BLOCK  # 64 bits: n may exceed 2^31
    offsets = block_start + tl.arange(0, BLOCK)
    mask = offsets < n
    x_keep = keep(block_start, seed, threshold, BLOCK)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(y_ptr + offsets, x * tl.where(x_keep, scale, 0.0), mask=mask)


def run(x, dy, p, seed):
    x, dy, n = x.contiguous(), dy.contiguous(), x.numel()
    y, dx = torch.empty_like(x), torch.empty_like(dy)
    block = 4096 // x.element_size()  # 128 lanes * 2 * 16 bytes
    grid, threshold, scale = (triton.cdiv(n, block),), int(p * 2**32), 1 / (1 - p) if p < 1 else 0.0
    dropout_kernel[grid](x, y, n, seed, threshold, scale, BLOCK=block, num_warps=4)
    dropout_kernel[grid](dy, dx, n, seed, threshold, scale, BLOCK=block, num_warps=4)
    return y, dx
