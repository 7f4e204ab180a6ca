"""Products of 16 bits in one launch by pointers: the tile by their number, any alignment, and a shared k.

`CONFIGS` for rows that begin at multiples of 16 bytes, `CONFIGS_ODD` for rows that begin anywhere. Few products of a
long k leave SMs idle: there several programs share a tile's k, and a second launch adds up (`split_k_reduce.py`).
"""

from functools import cache

import torch
import triton
import triton.language as tl
from alignment import assume_multiple, odd, unit
from split_k_reduce import add_up, split, tiles_of

SMS = 128  # of a large GPU, nearly
# (programs for each SM, tile). `config_of` takes the first tile of which the products hold so many, if it is not twice
# as high or wide as they are. The largest fills an SM alone; of the others an SM runs two, and one computes while the
# other waits. 0: however few there are
CONFIGS = [
    (1, {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8}),
    (2, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8}),
    (2, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4}),
    (0, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4}),
]
CONFIGS_ODD = [  # rows at any address: 2 bytes a load, through registers, none ahead of the products
    (1, {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4}),
    (2, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8}),
    (2, {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 128, "num_stages": 3, "num_warps": 4}),
    (0, {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 256, "num_stages": 3, "num_warps": 4}),
]


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
        acc = tl.dot(a, b, acc)
        a_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_ak
        b_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_bk
    tl.store(c_ptr + offs_m.to(tl.int64) * N + offs_n, acc, mask=(offs_m < rows) & (offs_n < columns))


@cache
def config_of(products, M, N, K, odd):
    """The configuration for so many products at once. odd: rows are not at multiples of 16 bytes."""
    *larger, (_, smallest) = CONFIGS_ODD if odd else CONFIGS
    found = (
        config
        for programs, config in larger
        if products * tiles_of(config, M, N) >= programs * SMS
        and config["BLOCK_M"] < 2 * M
        and config["BLOCK_N"] < 2 * N
    )
    config = next(found, smallest)
    return {**config, "BLOCK_K": min(config["BLOCK_K"], max(triton.next_power_of_2(K), 16)), "ODD": odd}


def multiply(x, y, overlap):
    """x @ y. overlap: the launch that adds up may come early (capability 9.0 and up)."""
    (batch, M, K), N = x.shape, y.shape[2]
    c = torch.empty(batch, M, N, dtype=x.dtype, device=x.device)
    strides = *x.stride(), *y.stride()
    is_odd, told = odd(x, *strides), unit(x, N, K, *strides)
    config, splits = split(batch, M, N, K, x.dtype, is_odd)
    if splits > 1:
        partials, grid = torch.empty(splits, batch, M, N, device=x.device), (batch * tiles_of(config, M, N), splits)
        config = {**config, "UNIT": told, "ODD": is_odd, "SPLIT": True, "OVERLAP": overlap}
        matmul_kernel[grid](x, y, partials, M, N, K, *strides, **config)
        add_up(partials, c, overlap)
    else:
        config = config_of(batch, M, N, K, is_odd)
        matmul_kernel[(batch * tiles_of(config, M, N),)](x, y, c, M, N, K, *strides, **config, UNIT=told)
    return c
