"""Attention forward and backward by autograd: n^2 weights a head are kept, and backward makes up to three more arrays.

Problem: forward, o = p @ v with p = softmax(s), s = q @ k.T / sqrt(d). Backward, from do, the gradient of o:

    dv = p.T @ do                        reads p
    dp = do @ v.T                        writes dp
    ds = p * (dp - rowsum(p * dp))       reads p and dp, writes ds      (softmax, backward)
    ds masked                            reads and writes ds            (if causal: 0 where s is masked)
    dq = ds @ k / sqrt(d)                reads ds
    dk = ds.T @ q / sqrt(d)              reads ds

Cost: with 4 x 16 heads, n = 2048 and 2 bytes, each such array is 512 MiB. With a causal mask the backward pass above
reads or writes one 9 times, and the forward pass (`baseline_attention.py`) 6 times: 7.5 GiB. q, k, v, do and the
gradients are 112 MiB (d = 64).
Predict: with 4.8 TB/s (H200, datasheet), how long does it take at least?
"""

import attention_common
import torch

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"batch": 1, "heads": 2, "n": 67, "d": 24, "causal": False, "dtype": "float16"},  # padded
    "check/causal": {"batch": 1, "heads": 2, "n": 127, "d": 64, "dtype": "float16"},
    "check/short": {"batch": 1, "heads": 3, "n": 3, "d": 16, "dtype": "float16"},  # with n = 1, dq and dk are 0
    "check/wide": {"batch": 1, "heads": 1, "n": 257, "d": 128, "dtype": "float16"},
    "check/whole": {"batch": 2, "heads": 1, "n": 128, "d": 128, "causal": False, "dtype": "float16"},
    "check/tuned/full": {"batch": 1, "heads": 1, "n": 257, "d": 64, "causal": False, "dtype": "float16"},
    "check/tuned/fp32": {"batch": 3, "heads": 1, "n": 129, "d": 32, "dtype": "float32"},
    "check/tuned/fp32/full": {"batch": 1, "heads": 3, "n": 131, "d": 128, "causal": False, "dtype": "float32"},
    "count": {"batch": 1, "heads": 2, "n": 512, "d": 64, "causal": False, "dtype": "float16"},
    "default": {"heads": 16, "n": 2048}, "long/4096/d64/causal/bf16": {},
}  # fmt: skip
TOLERANCE = (0.1, 0.5)  # with a causal mask, gradients and errors of the first rows are much larger


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v, do = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(4))
    return {"q": q, "k": k, "v": v, "do": do, "causal": causal}


def reference(q, k, v, do, causal):
    return attention_common.exact_gradients(q, k, v, do, causal)


def library(q, k, v, do, causal):  # FlashAttention-2, made for capability 8.0
    return attention_common.gradients_by("FLASH_ATTENTION", q, k, v, do, causal)


def library_cudnn(q, k, v, do, causal):
    return attention_common.gradients_by("CUDNN_ATTENTION", q, k, v, do, causal)


def library_efficient(q, k, v, do, causal):
    return attention_common.gradients_by("EFFICIENT_ATTENTION", q, k, v, do, causal)


def cost(q, k, v, do, causal):
    return {"dram_bytes": 7 * q.nbytes, **attention_common.flops(6, q, causal)}  # 7 tensors; 2 products and 4


def attend(q, k, v, causal):
    n, d = q.shape[-2:]
    scores = (q * d**-0.5) @ k.mT  # [batch, heads, n, n]
    if causal:
        scores.masked_fill_(torch.ones(n, n, dtype=torch.bool, device=q.device).triu_(1), float("-inf"))
    return torch.softmax(scores, -1) @ v


def run(q, k, v, do, causal):
    return attention_common.gradients(attend, q, k, v, do, causal)
