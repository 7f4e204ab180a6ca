"""Multiply a weight matrix by one token's vector, a program for each row: a program asks for 2 KiB, waits, and ends.

Problem: y = W x, W of [n, k], as each linear layer of a language model does for each token. No weight is used twice, so
memory is the limit. The default size is the last layer of a model of 1.1 B parameters:

    W           32,000 * 2048 * 2 bytes = 131 MB, larger than any L2
    x and y     68 KB
    products    2 * 32,000 * 2048       = 131 MFLOP, one for each byte

A program walks its row in blocks of 1024, a lane 8 elements: one load of 16 bytes of W at a time.

Cost: 32,000 programs of 4 KiB of W. Each also reads all of x, 4 KiB out of a cache. 16 programs of 128 threads fill an
SM, with 16 * 2 KiB = 32 KiB on the way while all of them load. A program that reads so little has much else to do:
start, add across lanes and warps, store, end.

Predict: `optimized_gemv_rows.py` reads the same W by the same loads of 16 bytes, in an eighth of the programs. How many
times faster is it?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

SIZES = {
    "check": {"n": 127, "k": 129, "dtype": "float32"}, "check/one": {"n": 1, "k": 1, "dtype": "float32"},
    "check/long": {"n": 3, "k": 9001, "dtype": "float32"},
    "check/fp16": {"n": 13, "k": 2049, "dtype": "float16"},
    "check/bf16": {"n": 9, "k": 5633},
    "count": {"n": 256, "k": 8192},
    "default": {"n": 32_000, "k": 2048},  # 131 MB of bfloat16: larger than any L2
    "small/2048x2048": {"n": 2048}, "few/256x65536": {"n": 256, "k": 65_536}, "few/32x65536": {"n": 32, "k": 65_536},
}  # fmt: skip


def inputs(n=32_000, k=2048, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    return {"x": torch.randn(k, **like), "w_weight": torch.randn(n, k, **like) * k**-0.5}


def reference(x, w_weight):
    return w_weight @ x


def library(x, w_weight):
    return torch.nn.functional.linear(x, w_weight)


def library_compiled(x, w_weight):
    return compiled(library, w_weight)(x, w_weight)


def cost(x, w_weight):
    return {"dram_read_bytes": w_weight.nbytes + x.nbytes}  # once; y is small


@triton.jit
def gemv_kernel(x_ptr, w_ptr, y_ptr, K, BLOCK_K: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # 64 bits: there may be more than 2^31 weights
    acc = tl.zeros((BLOCK_K,), tl.float32)
    for k in range(0, K, BLOCK_K):
        cols = k + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + row * K + cols, mask=cols < K, other=0.0)
        x = tl.load(x_ptr + cols, mask=cols < K, other=0.0)
        acc += w.to(tl.float32) * x.to(tl.float32)
    tl.store(y_ptr + row, tl.sum(acc, 0))


def run(x, w_weight):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    n, k = w_weight.shape
    y = torch.empty(n, dtype=x.dtype, device=x.device)
    gemv_kernel[(n,)](x, w_weight, y, k, BLOCK_K=1024, num_warps=4)
    return y
