"""Causal attention: the kernel copies v so far. Scores never go to memory: write the loop over blocks of k and v.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(heads, n, d, device="cuda"):
    return {name: torch.randn(heads, n, d, device=device).half() for name in ("q", "k", "v")}


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64) * n * D
    rows, dims = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    own = head + rows[:, None] * D + dims[None, :]  # this program's rows of q and of the result
    acc = tl.load(v_ptr + own, mask=rows[:, None] < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + own, acc, mask=rows[:, None] < n)


def run(q, k, v):
    out, (heads, n, d) = torch.empty_like(q), q.shape
    grid = (triton.cdiv(n, 64), heads)
    attention_kernel[grid](q, k, v, out, n, d**-0.5, D=d, BM=64, BN=64, num_warps=4)
    return out
