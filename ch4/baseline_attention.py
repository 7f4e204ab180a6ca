"""Attention in three operations, and a fourth for a mask: n^2 scores a head go through memory, 2 bytes each.

Problem: o = softmax(q @ k.T / sqrt(d)) @ v for each head of q, k and v [batch, heads, n, d]. With a causal mask a row
sees no later columns. Each operation leaves its answer in memory, and the next one reads it. With 4 x 32 heads and
n = 4096 (`--size long/4096/d64/causal/bf16`; the default is 4 x 16 heads and n = 2048), and 2 bytes a score:

    q @ k.T     writes the scores                4 GiB
    mask        reads and writes them            8 GiB, if causal
    softmax     reads them, writes the weights   8 GiB
    @ v         reads the weights                4 GiB     q, k, v and o are 64 MiB each (d = 64)

Cost: memory for n^2 scores, and 24 GiB of traffic. The products, masked scores included, are 550 GFLOP.
Predict: with 4.8 TB/s and 989 TFLOP/s (H200, datasheet), do the bytes or the products take longer, and how many times
as long?
"""

import attention_common
import torch

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"batch": 1, "heads": 2, "n": 127, "d": 64, "dtype": "float16"},
    "check/full": {"batch": 2, "heads": 1, "n": 127, "d": 24, "causal": False, "dtype": "float16"},  # padded
    "check/one": {"batch": 1, "heads": 3, "n": 1, "d": 16, "dtype": "float16"},
    "check/wide": {"batch": 1, "heads": 1, "n": 257, "d": 128, "dtype": "float16"},
    "check/wide/full": {"batch": 1, "heads": 1, "n": 257, "d": 128, "causal": False, "dtype": "float16"},
    "check/whole": {"batch": 1, "heads": 1, "n": 256, "d": 64, "causal": False, "dtype": "float16"},
    "check/tuned/fp32": {"batch": 3, "heads": 1, "n": 129, "d": 32, "dtype": "float32"},
    "check/tuned/fp32/full": {"batch": 1, "heads": 3, "n": 131, "d": 128, "causal": False, "dtype": "float32"},
    "check/tuned/136": {"batch": 1, "heads": 2, "n": 131, "d": 136, "dtype": "float16"},
    "count": {"batch": 1, "heads": 4, "n": 512, "d": 64, "dtype": "float16"},
    "default": {"heads": 16, "n": 2048}, "long/4096/d64/causal/bf16": {}, "long/4096/d64/full/bf16": {"causal": False},
}  # fmt: skip
TOLERANCE = (0.1, 0.25)  # with a causal mask, values and errors of the first rows are much larger


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(3))
    return {"q": q, "k": k, "v": v, "causal": causal}


def reference(q, k, v, causal):
    return attention_common.exact(q, k, v, causal)


def library(q, k, v, causal):  # FlashAttention-2, made for capability 8.0
    return attention_common.by("FLASH_ATTENTION", q, k, v, causal)


def library_cudnn(q, k, v, causal):
    return attention_common.by("CUDNN_ATTENTION", q, k, v, causal)


def library_efficient(q, k, v, causal):
    return attention_common.by("EFFICIENT_ATTENTION", q, k, v, causal)


def cost(q, k, v, causal):
    return {"dram_bytes": 4 * q.nbytes, **attention_common.flops(2, q, causal)}  # read q, k, v, write o; q @ k.T, p @ v


def run(q, k, v, causal):
    n, d = q.shape[-2:]
    scores = (q * d**-0.5) @ k.mT  # [batch, heads, n, n]
    if causal:
        scores.masked_fill_(torch.ones(n, n, dtype=torch.bool, device=q.device).triu_(1), float("-inf"))
    return torch.softmax(scores, -1) @ v
