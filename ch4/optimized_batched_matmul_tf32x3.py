"""Multiply 40 pairs of matrices in one launch, float32 as three TF32 products, each at 7 times the CUDA cores' rate.

Problem: `optimized_batched_matmul_one_launch.py` multiplies float32 on the CUDA cores: 67 TFLOP/s by an H200's
datasheet. Tensor cores do 495 TFLOP/s in TF32, but TF32 keeps only 10 bits of a float32's fraction. (The default size
is float16, where this version has nothing to do: run it with `--size medium/40x128/fp32`.)
Idea: split each number in two, the number rounded to TF32 and the rest. (The rest is not rounded: it has up to 12 bits,
and the tensor cores read 11.) A product of two numbers is four of their parts. Leave out the smallest:

    (a + a') (b + b') = a b + a b' + a' b + a' b'     a' and b' up to 2^-11 of a and b, so a' b' up to 2^-22

This is a few times float32's own rounding, 2^-24. In a sum such errors partly cancel, and the answer is judged as
float32. Tensor cores cut a sum off where float32 rounds it. These errors do not cancel, they grow with k: so each block
of k begins at zero, and the CUDA cores add its sum to the others.
Cost: 40 products of 128^3 are 168 MFLOP and 7.5 MiB. By an H200's datasheet

    CUDA cores      at 67 TFLOP/s                     2.5 us
    tensor cores    at 495 TFLOP/s, 3 times as many   1.0 us
    memory          at 4.8 TB/s                       1.6 us

Each program splits all that it loads, several instructions a number. TF32's smallest step is 2^-136: numbers below
2^-113 lose bits of their rest. Where the answer is infinite, it may be NaN instead: a product with a rest may have the
other sign. If it overflows, too, as with an infinity and a number in the thousands, both infinities are added.
16-bit numbers have nothing to split: their kernel is that of `optimized_batched_matmul_one_launch.py`. The limit is
counted at the CUDA cores' rate, as for the other versions.
Predict: how many times as fast can 40 products of 256^3 in float32 be, by the rates above?
"""

import torch
import triton
import triton.language as tl

VERSUS = "one_launch"
REQUIRES = {"capability": (8, 0)}
LARGEST = tl.constexpr(2.0**128 - 2.0**117)  # of TF32


def inputs(batch=40, m=128, n=128, k=128, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    y = torch.randn(batch, *((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(batch, m, k, dtype=dtype, device=device), "y": y.mT if transposed else y}


@triton.jit
def split_tf32(x):
    """x rounded to TF32, and the rest. Of an infinity: TF32's largest number, since 0 times that is 0, and infinity."""
    high = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    high = tl.clamp(high, -LARGEST, LARGEST)
    return high, x - high


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n, pid = tl.cdiv(N, BLOCK_N), tl.program_id(0).to(tl.int64)  # 64 bits: offsets may exceed 2^31
    pid_b = tl.program_id(1).to(tl.int64)  # which product
    a_ptr, b_ptr, c_ptr = a_ptr + pid_b * stride_ab, b_ptr + pid_b * stride_bb, c_ptr + pid_b * M * N
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
        a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n * stride_bn
        a = tl.load(a_ptrs, mask=(offs_m < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K) & (offs_n < N), other=0.0)
        if a.dtype == tl.float32:
            high_a, low_a = split_tf32(a)
            high_b, low_b = split_tf32(b)
            part = tl.dot(low_a, high_b, input_precision="tf32")
            part = tl.dot(high_a, low_b, part, input_precision="tf32")
            acc += tl.dot(high_a, high_b, part, input_precision="tf32")
        else:
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, y):
    (batch, M, K), N = x.shape, y.shape[2]
    c = torch.empty(batch, M, N, dtype=x.dtype, device=x.device)
    block_k = 64 if x.element_size() == 2 else 32  # 128 bytes of a row
    tiles = triton.cdiv(M, 64) * triton.cdiv(N, 64)
    matmul_kernel[(tiles, batch)](x, y, c, M, N, K, *x.stride(), *y.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=block_k)
    return c
