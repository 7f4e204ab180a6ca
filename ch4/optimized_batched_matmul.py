"""Multiply 40 pairs of 128 x 128 matrices in one launch: the grid has a tile of every product, 160 programs at once.

Problem: `baseline_batched_matmul.py` waits for a launch and for memory 40 times.
Idea: one launch. A program takes 64 x 64 of one product. Both of its blocks of k = 64 are in flight before it
multiplies the first one, so that all programs wait for memory once.

    40 products * 4 tiles = 160 programs    one for each of 132 SMs, two for some
    40 * 3 * 32 KiB = 3.75 MiB              0.8 us of an H200's memory, by its datasheet
    40 * 2 * 128^3 = 168 MFLOP              0.2 us of its tensor cores

Cost: neither is the limit. A launch, a load from memory and a store come one after the other, however small they are.
In float32, without tensor cores, the products take longer: 168 MFLOP at 67 TFLOP/s are 2.5 us. Few products of a long
k still leave SMs idle. There several programs share a tile's k, and a second launch adds up (`split_k_reduce.py`).
Predict: from 64^3 to 128^3 the arithmetic grows by 8 and the bytes by 4. By what factor does the time grow?
"""

import torch
import triton
import triton.language as tl
from alignment import assume_multiple, odd, unit
from split_k_reduce import add_up, split, tiles_of

REQUIRES = {"capability": (8, 0)}
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


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, UNIT: tl.constexpr,
    ODD: tl.constexpr, SPLIT: tl.constexpr = False, OVERLAP: tl.constexpr = False,
):  # fmt: skip
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()  # the launch that adds up may come to the SMs and wait
    N, K = assume_multiple(N, UNIT), assume_multiple(K, UNIT)  # of what lengths and strides are multiples
    stride_ab, stride_am, stride_ak = (assume_multiple(stride_ab, UNIT), assume_multiple(stride_am, UNIT),
                                       assume_multiple(stride_ak, UNIT))  # fmt: skip
    stride_bb, stride_bk, stride_bn = (assume_multiple(stride_bb, UNIT), assume_multiple(stride_bk, UNIT),
                                       assume_multiple(stride_bn, UNIT))  # fmt: skip
    num_pid_n, num_tiles = tl.cdiv(N, BLOCK_N), tl.cdiv(N, BLOCK_N) * tl.cdiv(M, BLOCK_M)
    pid, pid_b = tl.program_id(0) % num_tiles, (tl.program_id(0) // num_tiles).to(tl.int64)
    a_ptr, b_ptr, c_ptr = a_ptr + pid_b * stride_ab, b_ptr + pid_b * stride_bb, c_ptr + pid_b * M * N
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
    if SPLIT:  # program_id(1): which part of k is this program's
        part = tl.cdiv(tl.cdiv(K, BLOCK_K), tl.num_programs(1)) * BLOCK_K
        first_k = tl.program_id(1) * part
        a_ptrs += first_k.to(tl.int64) * stride_ak
        b_ptrs += first_k.to(tl.int64) * stride_bk
        c_ptr += tl.program_id(1).to(tl.int64) * (tl.num_programs(0) // num_tiles) * M * N
        K = min(K - first_k, part)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(offs_m < rows) & (offs_k[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n < columns), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # of float32: no TF32
        a_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_ak
        b_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_bk
    tl.store(c_ptr + offs_m.to(tl.int64) * N + offs_n, acc, mask=(offs_m < rows) & (offs_n < columns))


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


def setup(x, y):
    return {"overlap": x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)}


def run(x, y, overlap):
    (batch, M, K), N = x.shape, y.shape[2]
    c = torch.empty(batch, M, N, dtype=x.dtype, device=x.device)
    y = y.contiguous() if x.dtype == torch.float32 else y  # threads of CUDA cores read rows of it side by side
    strides = *x.stride(), *y.stride()
    is_odd, told = odd(x, *strides), unit(x, N, K, *strides)
    config, splits = split(batch, M, N, K, x.dtype, is_odd)
    if c.numel() and splits > 1:
        partials, grid = torch.empty(splits, batch, M, N, device=x.device), (batch * tiles_of(config, M, N), splits)
        config = {**config, "UNIT": told, "ODD": is_odd, "SPLIT": True, "OVERLAP": overlap}
        matmul_kernel[grid](x, y, partials, M, N, K, *strides, **config)
        add_up(partials, c, overlap)
    elif c.numel():
        config = config_of(batch, M, N, K, x.dtype, is_odd)
        matmul_kernel[(batch * tiles_of(config, M, N),)](x, y, c, M, N, K, *strides, **config, UNIT=told)
    return c
