"""Attention, what its pairs share: exact answers head by head, torch's kernels, costs, memory layouts."""

from functools import partial

import torch
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

TAKES = {
    "FLASH_ATTENTION": cuda.can_use_flash_attention,
    "CUDNN_ATTENTION": cuda.can_use_cudnn_attention,
    "EFFICIENT_ATTENTION": cuda.can_use_efficient_attention,
}


def by(backend, q, k, v, causal):
    """torch's own attention by the kernels named: FLASH_ATTENTION, CUDNN_ATTENTION or EFFICIENT_ATTENTION.

    On a CPU, in float32 and where torch says that these kernels cannot: by torch's plain operations (MATH).
    """
    asked = cuda.SDPAParams(q, k, v, None, 0.0, causal, False)  # no mask, no dropout, no shared heads
    takes = q.is_cuda and q.dtype != torch.float32 and backend in TAKES and TAKES[backend](asked)
    with sdpa_kernel(getattr(SDPBackend, backend if takes else "MATH")):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


def gradients(attention, q, k, v, do, causal):
    """dq, dk, dv of `attention(q, k, v, causal)`, by autograd."""
    leaves = [each.detach().requires_grad_() for each in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(attention(*leaves, causal), leaves, do)


def gradients_by(backend, q, k, v, do, causal):
    """dq, dk, dv of torch's own attention by the kernels named."""
    return gradients(partial(by, backend), q, k, v, do, causal)


def exact(q, k, v, causal):
    """o, one head after the other: all scores in float64 may not fit in memory."""
    heads = (each.flatten(0, 1) for each in (q, k, v))
    return torch.stack([_weights(q, k, causal) @ v for q, k, v in zip(*heads, strict=True)]).view_as(q)


def exact_gradients(q, k, v, do, causal):
    """dq, dk, dv, head by head."""
    found = []
    for each in zip(*(x.flatten(0, 1) for x in (q, k, v, do)), strict=True):
        found.append(_gradients(*each, causal))
    return tuple(torch.stack(all_heads).view_as(q) for all_heads in zip(*found, strict=True))


def _weights(q, k, causal):
    scores = q @ k.T * q.shape[1] ** -0.5
    if causal:
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu_(1), float("-inf"))
    return torch.softmax(scores, -1)


def _gradients(q, k, v, do, causal):
    p, dp = _weights(q, k, causal), do @ v.T
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * q.shape[1] ** -0.5
    return ds @ k, ds.T @ q, p.T @ do


def flops(products, q, causal):
    """FLOP of a number of products of n x n x d a head; a causal mask leaves n (n + 1) / 2 of the n^2 scores."""
    batch, heads, n, d = q.shape
    scores = n * (n + 1) // 2 if causal else n * n
    kind = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64"}[q.dtype]
    return {f"{kind}_flops": products * 2 * batch * heads * scores * d}


def aligned(*tensors):
    """Contiguous, at multiples of 16 bytes, as descriptors need it."""
    packed = [x.contiguous() for x in tensors]
    return [x.clone() if x.data_ptr() % 16 else x for x in packed]


def widened(*tensors, to=0):
    """`aligned`, with zeros up to `to` dimensions, or a power of two, 16 at least: zeros add nothing to any product."""
    d = tensors[0].shape[3]
    more = (to or max(16, 1 << (d - 1).bit_length())) - d
    return aligned(*(torch.nn.functional.pad(x, (0, more)) if more else x for x in tensors))
