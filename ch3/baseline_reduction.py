"""Sum a vector in two stages: a block of 1024 elements a program, and as many partial sums as blocks for the next.

Problem: programs cannot wait for each other, so each writes the sum of its block to memory, and a second launch adds
these up:

    stage 1    65,536 programs read 4 KiB each, write 4 bytes
    stage 2    65,536 partial sums, read by torch.sum

However many partial sums there are, all are added. (A second stage that reads a fixed number of them is wrong beyond.)

Cost: 4 bytes an element of float32, read once: 256 MiB take 56 us at an H200's 4.8 TB/s (datasheet). The second launch
waits for the last program of the first. A program lives for one block: it starts, waits for its loads, adds up across
its lanes, writes and ends.

Predict: `optimized_reduction_walk.py` has a few hundred programs, `optimized_reduction_last.py` also a single launch.
Which of the two gains more at 1 Mi elements, and which at 256 Mi?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 40_127}, "check/one": {"n": 1}, "check/tail": {"n": 4097}, "check/many": {"n": 120_001},
    "check/fp16": {"n": 16_385, "dtype": "float16"}, "check/bf16": {"n": 8191, "dtype": "bfloat16"},
    "count": {"n": 524_288},
    "default": {"n": 67_108_864},  # 256 MiB of float32: larger than any L2
    "small/1Mi": {"n": 1_048_576}, "large/256Mi": {"n": 268_435_456},
}  # fmt: skip


def inputs(n=67_108_864, dtype="float32", device="cuda"):
    return {"x": torch.rand(n, device=device).to(getattr(torch, dtype))}  # of one sign: nothing cancels


def reference(x):
    return x.sum()


def library(x):
    return x.sum(dtype=torch.float32)


def cost(x):
    return {"dram_read_bytes": x.nbytes}  # once


@triton.jit
def sum_kernel(x_ptr, partial_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64 bits: n may exceed 2^31
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(partial_ptr + pid, tl.sum(x, 0))


def run(x):
    x, n = x.contiguous(), x.numel()
    partial = torch.empty(triton.cdiv(n, 1024), device=x.device)
    sum_kernel[(triton.cdiv(n, 1024),)](x, partial, n, BLOCK=1024, num_warps=4)
    return partial.sum()
