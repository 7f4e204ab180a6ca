"""Multiply 40 pairs of 128 x 128 matrices, one after the other: 40 launches, each of which leaves most SMs idle.

Problem: a product of 128^3 in float16 is 4 tiles of 64 x 64, for 4 of an H200's 132 SMs.

    2 * 128^3 = 4.2 MFLOP              4 SMs do that in 0.14 us (datasheet)
    2 * 32 KiB read, 32 KiB written

Cost: a kernel begins after the last program of the one before has ended, and then it waits for its first load. 40
launches wait 40 times. The CPU may need longer to issue 40 launches than the GPU to run them.
Predict: `optimized_batched_matmul.py` is one launch for all. Is it 40 times as fast?
"""

import torch
import triton
import triton.language as tl
from alignment import assume_multiple, odd, unit

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"batch": 3, "m": 127, "n": 65, "k": 129}, "check/by8": {"batch": 3, "m": 33, "n": 72, "k": 136},
    "check/one": {"batch": 1, "m": 1, "n": 1, "k": 1}, "check/row": {"batch": 7, "m": 1, "n": 131, "k": 67},
    "check/fp32": {"batch": 3, "m": 67, "n": 65, "k": 33, "dtype": "float32"},
    "check/transposed": {"batch": 3, "m": 33, "n": 65, "k": 129, "transposed": True},
    "check/by4/fp32": {"batch": 3, "m": 33, "n": 20, "k": 36, "dtype": "float32"},
    "check/long": {"batch": 53, "m": 33, "n": 5, "k": 600},  # several programs share a k, which they do not divide
    "check/long/fp32": {"batch": 1, "m": 65, "n": 20, "k": 300, "dtype": "float32"},
    "check/nothing": {"batch": 3, "m": 5, "n": 7, "k": 0}, "check/none": {"batch": 0, "m": 5, "n": 7, "k": 3},
    "count": {"batch": 40, "m": 128, "n": 128, "k": 128},
    "default": {"batch": 40, "m": 128, "n": 128, "k": 128}, "medium/40x128/fp32": {"dtype": "float32"},
    "large/40x256/fp16": {"m": 256, "n": 256, "k": 256},
}  # fmt: skip
SMS = 128  # of a large GPU, nearly
# (programs for each SM, tile). `config_of` takes the first tile of which the products hold so many, if it is not twice
# as high or wide as they are. The largest fills an SM alone; of the others an SM runs two, and one computes while the
# other waits. 0: however few there are
CONFIGS_FP16 = [  # and bfloat16, on tensor cores
    (1, {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8}),
    (2, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8}),
    (2, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4}),
    (0, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4}),
]
CONFIGS_ODD = [  # of 16 bits, rows at any address: 2 bytes a load, through registers, none ahead of the products
    (1, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4}),
    (2, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8}),
    (2, {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 128, "num_stages": 3, "num_warps": 4}),
    (0, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 256, "num_stages": 3, "num_warps": 4}),
]
CONFIGS_FP32 = [  # on CUDA cores
    (2, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, "num_stages": 3, "num_warps": 4}),
    (0, {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "num_stages": 3, "num_warps": 4}),
]
CONFIGS_FP32_ODD = [  # copying ahead, 4 bytes at a time, would cost more than it hides
    (2, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_stages": 1, "num_warps": 4}),
    CONFIGS_FP32[-1],
]


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
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, UNIT: tl.constexpr,
    ODD: tl.constexpr,
):  # fmt: skip
    N, K = assume_multiple(N, UNIT), assume_multiple(K, UNIT)  # of what lengths and strides are multiples
    stride_am, stride_ak = assume_multiple(stride_am, UNIT), assume_multiple(stride_ak, UNIT)
    stride_bk, stride_bn = assume_multiple(stride_bk, UNIT), assume_multiple(stride_bn, UNIT)
    num_pid_n, pid = tl.cdiv(N, BLOCK_N), tl.program_id(0)
    # 64 bits: offsets may exceed 2^31
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    offs_k, rows, columns = tl.arange(0, BLOCK_K), M, N
    if ODD:  # a thread copies single elements: offsets from the block's first one take fewer registers than addresses
        first_m, first_n = pid // num_pid_n * BLOCK_M, pid % num_pid_n * BLOCK_N
        a_ptr += first_m.to(tl.int64) * stride_am
        b_ptr += first_n.to(tl.int64) * stride_bn
        c_ptr += first_m.to(tl.int64) * N + first_n
        offs_m, offs_n = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
        rows, columns = M - first_m, N - first_n
    a_ptrs = a_ptr + offs_m.to(tl.int64) * stride_am + offs_k.to(tl.int64)[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k.to(tl.int64)[:, None] * stride_bk + offs_n.to(tl.int64) * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(offs_m < rows) & (offs_k[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n < columns), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # of float32: no TF32
        a_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_ak
        b_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_bk
    tl.store(c_ptr + offs_m.to(tl.int64) * N + offs_n, acc, mask=(offs_m < rows) & (offs_n < columns))


def tiles_of(config, M, N):
    return triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])


def config_of(products, M, N, K, dtype, odd):
    """The configuration for so many products at once. odd: rows are not at multiples of 16 bytes."""
    aligned, off = (CONFIGS_FP32, CONFIGS_FP32_ODD) if dtype == torch.float32 else (CONFIGS_FP16, CONFIGS_ODD)
    *larger, (_, smallest) = off if odd else aligned
    found = (
        config
        for programs, config in larger
        if products * tiles_of(config, M, N) >= programs * SMS
        and config["BLOCK_M"] < 2 * M
        and config["BLOCK_N"] < 2 * N
    )
    config = next(found, smallest)
    return {**config, "BLOCK_K": min(config["BLOCK_K"], max(triton.next_power_of_2(K), 16)), "ODD": odd}


def run(x, y):
    (batch, M, K), N = x.shape, y.shape[2]
    c = torch.empty(batch, M, N, dtype=x.dtype, device=x.device)
    y = y.contiguous() if x.dtype == torch.float32 else y  # threads of CUDA cores read rows of it side by side
    strides = *x.stride()[1:], *y.stride()[1:]
    config = config_of(1, M, N, K, x.dtype, odd(x, *strides))
    tiles, config["UNIT"] = tiles_of(config, M, N), unit(x, N, K, *strides)
    for i in range(batch if M * N else 0):
        matmul_kernel[(tiles,)](x[i], y[i], c[i], M, N, K, *strides, **config)
    return c
