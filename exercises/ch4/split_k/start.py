"""A product of few rows with a long k: `plan` shares nothing so far, so that few programs do all the work.

Yours: `plan`, `run` and a kernel that adds up. Given: `inputs` and `matmul_kernel`.
"""

import torch
import triton
import triton.language as tl


def inputs(m, n, k, room, device="cuda"):
    x = torch.randn(m, k, device=device).half()
    return {"x": x, "w": torch.randn(k, n, device=device).half(), "room": room}


@triton.jit
def matmul_kernel(
    x_ptr, w_ptr, parts_ptr, M, N, K, share, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Program (t, s): tile t of part s, the sum over the k from s * share to (s + 1) * share. BK divides share."""
    offs_m = (tl.program_id(0) // tl.cdiv(N, BN) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    offs_n = (tl.program_id(0) % tl.cdiv(N, BN) * BN + tl.arange(0, BN)).to(tl.int64)[None, :]
    first = tl.program_id(1) * share
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(first, min(first + share, K), BK):
        at_k = (k + tl.arange(0, BK)).to(tl.int64)
        x = tl.load(x_ptr + offs_m * K + at_k[None, :], mask=(offs_m < M) & (at_k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + at_k[:, None] * N + offs_n, mask=(at_k[:, None] < K) & (offs_n < N), other=0.0)
        acc = tl.dot(x, w, acc)
    parts_ptr += tl.program_id(1).to(tl.int64) * M * N
    tl.store(parts_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def plan(tiles, k, room):
    """How many programs share each tile, and how much of k each takes."""
    return 1, 64 * triton.cdiv(k, 64)


def run(x, w, room):
    (M, K), N = x.shape, w.shape[1]
    tiles = triton.cdiv(M, 16) * triton.cdiv(N, 64)
    splits, share = plan(tiles, K, room)
    parts = torch.empty(splits, M, N, device=x.device)
    matmul_kernel[(tiles, splits)](x, w, parts, M, N, K, share, BM=16, BN=64, BK=64, num_warps=4, num_stages=4)
    return parts, parts[0]
