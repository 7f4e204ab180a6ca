"""Multiply 40 pairs of 128 x 128 matrices, one after the other: 40 launches, each of which leaves most SMs idle.

Problem: a product of 128^3 in float16 is 4 tiles of 64 x 64, for 4 of an H200's 132 SMs.

    2 * 128^3 = 4.2 MFLOP              4 SMs do that in 0.14 us (datasheet)
    2 * 32 KiB read, 32 KiB written

Cost: a kernel begins after the last program of the one before has ended, and then it waits for its first load. 40
launches wait 40 times. The CPU may need longer to issue 40 launches than the GPU to run them.
Predict: `optimized_batched_matmul_one_launch.py` is one launch for all. Is it 40 times as fast?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"batch": 3, "m": 67, "n": 65, "k": 129},
    "check/one": {"batch": 1, "m": 1, "n": 1, "k": 1},
    "check/fp32": {"batch": 3, "m": 33, "n": 65, "k": 35, "dtype": "float32"},
    "check/transposed": {"batch": 2, "m": 33, "n": 65, "k": 129, "transposed": True},
    "check/tuned/by8": {"batch": 3, "m": 33, "n": 72, "k": 136}, "check/tuned/nothing": {"m": 5, "n": 7, "k": 0},
    "check/tuned/short/fp32": {"batch": 2, "m": 5, "n": 7, "k": 9, "dtype": "float32"},
    "check/tuned/none": {"batch": 0, "m": 5, "n": 7, "k": 3},
    "check/row/fp32": {"batch": 2, "m": 1, "n": 20, "k": 100, "dtype": "float32"},  # the ninth draws -inf
    "check/tuned/blocks": {"batch": 2, "m": 67, "n": 72, "k": 264},  # by descriptor; the second product's rows follow
    "check/tuned/blocks/transposed": {"batch": 2, "m": 5, "n": 24, "k": 264, "transposed": True},
    "check/tuned/split": {"batch": 2, "m": 130, "n": 250, "k": 691},  # 6 programs share 11 blocks of k, the last has 1
    "count": {"batch": 40, "m": 128, "n": 128, "k": 128},
    "default": {"batch": 40, "m": 128, "n": 128, "k": 128}, "medium/40x128/fp32": {"dtype": "float32"},
    "large/40x256/fp16": {"m": 256, "n": 256, "k": 256},
}  # fmt: skip


def inputs(batch=40, m=128, n=128, k=128, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    y = torch.randn(batch, *((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(batch, m, k, dtype=dtype, device=device), "y": y.mT if transposed else y}


def reference(x, y):
    return torch.bmm(x, y)


def library(x, y):
    return torch.bmm(x, y)


def cost(x, y):
    kind = {torch.float16: "fp16_flops", torch.bfloat16: "bf16_flops", torch.float32: "fp32_flops"}[x.dtype]
    result = x.shape[0] * x.shape[1] * y.shape[2] * x.element_size()
    return {"dram_bytes": x.nbytes + y.nbytes + result, kind: 2 * x.numel() * y.shape[2]}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n, pid = tl.cdiv(N, BLOCK_N), tl.program_id(0).to(tl.int64)  # 64 bits: offsets may exceed 2^31
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
        a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n * stride_bn
        a = tl.load(a_ptrs, mask=(offs_m < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K) & (offs_n < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # of float32: no TF32
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, y):
    (batch, M, K), N = x.shape, y.shape[2]
    c = torch.empty(batch, M, N, dtype=x.dtype, device=x.device)
    block_k = 64 if x.element_size() == 2 else 16  # float32 is multiplied from registers, which hold less
    tiles = triton.cdiv(M, 64) * triton.cdiv(N, 64)
    for i in range(batch):
        matmul_kernel[(tiles,)](
            x[i], y[i], c[i], M, N, K, *x.stride()[1:], *y.stride()[1:], BLOCK_M=64, BLOCK_N=64, BLOCK_K=block_k
        )
    return c
