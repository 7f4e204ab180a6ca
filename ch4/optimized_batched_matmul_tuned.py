"""Multiply pairs of matrices of any shape, type and alignment: one of three kernels, and its tile, by the shape.

Problem: `optimized_batched_matmul_tf32x3.py` has one tile for all shapes. A large product fetches its blocks too often,
few products of a long k leave SMs idle, and rows that begin off 16 bytes are loaded by the element.
Idea: choose by what is multiplied.

    float32                        three TF32 products, next loads beside them      `batched_tf32x3.py`
    16 bits, k up to 256           tiles by pointers: little to load ahead          `batched_pointers.py`
    16 bits, few tiles, long k     several programs share k                         `batched_pointers.py`
    16 bits, long k                blocks by descriptor, by one or two programs an SM    here

The kernel here fetches a block by TMA, by its coordinates: product, row and column, with zeros beyond the edges of each
product, so that no block reads the next product's numbers. Each program takes every 132nd (or 264th) tile of all
products, and the next tile's blocks are in flight while one is stored:

    tile         programs an SM    in flight while a step is multiplied
    128 x 256    1                 3 steps of k = 64: 144 KiB
    128 x 128    1                 3 steps of k = 64: 96 KiB
    128 x 128    2                 2 steps of k = 64: 64 KiB each. One multiplies while the other one stores
     64 x  64    1                 4 steps of k = 128: 128 KiB. For few tiles, or small products

`tile_of` estimates the time of each tile, by times of an H100: a round is one tile for each program, and takes a fixed
time and one for each step. The shortest wins.
Cost: x or y is copied first if its rows do not begin at multiples of 16 bytes, or not at equal distances in the whole
batch. A result with such rows is written with gaps, and copied. These are up to three more launches, so products of
less than 2 GFLOP with such rows are multiplied by pointers. The host encodes three descriptors a launch. The sides of a
tile are powers of two: for 328 x 264, tiles of 128 x 128 compute 384 x 384, 1.7 times as much.
Predict: 512 x 512 x 2048 has 64 tiles of 64 x 64. How long do the loads of one tile take, at 64 bytes a clock?
"""

from functools import cache

import batched_pointers
import batched_tf32x3
import torch
import triton
import triton.language as tl
from alignment import odd
from split_k_reduce import tiles_of
from tma_layout import close, describable, padded
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = "tf32x3"
REQUIRES = {"capability": (8, 0)}
SMS = 132  # of an H100 or H200
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
FLATTEN = tl.constexpr(True)  # one loop over tiles and steps: the next tile's blocks are requested early
SHORT_K = 256  # up to here a program has all or half of k in flight at once, by pointers too
COPIED_FLOP = 2**31  # from here on (estimated) a faster product pays for the copies of rows that begin anywhere
# (programs an SM, fixed us of a round, its us for each 64 of k, tile); the times are of an H100
TILES = [
    (1, 3.6, 0.50, {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_stages": 4, "num_warps": 8}),
    (1, 2.2, 0.31, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4, "num_warps": 8}),
    (2, 3.5, 0.54, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4}),
    (1, 0.9, 0.14, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128, "num_stages": 5, "num_warps": 4}),
]


def inputs(batch=40, m=128, n=128, k=128, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    y = torch.randn(batch, *((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(batch, m, k, dtype=dtype, device=device), "y": y.mT if transposed else y}


@triton.jit
def matmul_kernel(
    a_desc, b_desc, c_desc, batch, M, N, K, A_IS_TRANSPOSED: tl.constexpr, B_IS_TRANSPOSED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    num_tiles = num_pid_m * num_pid_n  # of a product
    for tile in tl.range(tl.program_id(0), batch * num_tiles, tl.num_programs(0), flatten=FLATTEN):
        pid_b, pid = tl.cast(tile // num_tiles, tl.int32), tl.cast(tile % num_tiles, tl.int32)
        first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
        group_size_m = min(num_pid_m - first_pid_m, GROUP_M)  # the last group's may be lower
        pid_in_group = pid % (GROUP_M * num_pid_n)
        m = (first_pid_m + pid_in_group % group_size_m) * BLOCK_M
        n = pid_in_group // group_size_m * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            if A_IS_TRANSPOSED:
                a = a_desc.load([pid_b, k, m]).reshape(BLOCK_K, BLOCK_M).T
            else:
                a = a_desc.load([pid_b, m, k]).reshape(BLOCK_M, BLOCK_K)
            if B_IS_TRANSPOSED:
                b = b_desc.load([pid_b, n, k]).reshape(BLOCK_N, BLOCK_K).T
            else:
                b = b_desc.load([pid_b, k, n]).reshape(BLOCK_K, BLOCK_N)
            acc = tl.dot(a, b, acc)
        acc0, acc1 = tl.split(acc.to(c_desc.dtype).reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1))
        c_desc.store([pid_b, m, n], acc0.reshape(1, BLOCK_M, BLOCK_N // 2))
        c_desc.store([pid_b, m, n + BLOCK_N // 2], acc1.reshape(1, BLOCK_M, BLOCK_N // 2))


@cache
def tile_of(products, M, N, K):
    """(Programs an SM, the tile) of which all rounds take the least time."""

    def time(programs, start, step, tile):
        return triton.cdiv(products * tiles_of(tile, M, N), programs * SMS) * (start + K / 64 * step)

    programs, *_, tile = min(TILES, key=lambda each: time(*each))
    return programs, tile


def descriptor(rows, batch, block):
    """Of rows [batch * m, n] as [batch, m, n]."""
    m, n, stride = len(rows) // batch, rows.shape[1], rows.stride(0)
    return TensorDescriptor(rows, [batch, m, n], [m * stride, stride, 1], [1, *block])


def described(x, rows, columns):
    """(A descriptor of x [batch, m, n], or of its copy, with blocks [1, rows, columns]; is it of the transposed x?)"""
    is_transposed = x.stride(2) > x.stride(1)
    x, block = (x.mT, [columns, rows]) if is_transposed else (x, [rows, columns])
    every = x.flatten(0, 1)  # rows of all products
    if every.stride(0) < every.stride(1):  # one row or column a product: `describable` would turn them all
        every = every.clone(memory_format=torch.contiguous_format)
    return descriptor(describable(every)[0], len(x), block), is_transposed


def is_for_descriptors(x, y, sms):
    (batch, M, K), N = x.shape, y.shape[2]
    tiles = batch * triton.cdiv(M, 64) * triton.cdiv(N, 64)
    pays = 2 * batch * M * N * K >= COPIED_FLOP or not odd(x, *x.stride(), *y.stride())
    return K > SHORT_K and tiles >= sms // 2 and pays  # fewer tiles: programs share k


def by_descriptor(x, y, sms, shared):
    (batch, M, K), N = x.shape, y.shape[2]
    programs, tile = tile_of(batch, M, N, K)
    rows, columns, step = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    c_part = rows * columns // 2 * x.element_size() + 1024  # and barriers
    stages = (shared // programs - c_part) // ((rows + columns) * step * x.element_size())
    c = padded(x, batch * M, N)
    (a_desc, a_is_transposed), (b_desc, b_is_transposed) = described(x, rows, step), described(y, step, columns)
    c_desc = descriptor(c, batch, [rows, columns // 2])
    tile = {**tile, "num_stages": max(min(tile["num_stages"], stages), 1)}
    matmul_kernel[(min(programs * sms, batch * tiles_of(tile, M, N)),)](
        a_desc, b_desc, c_desc, batch, M, N, K, a_is_transposed, b_is_transposed, **tile
    )
    return close(c).view(batch, M, N)


def setup(x, y):
    if x.is_cpu:
        return {"has_tma": True, "sms": 3, "shared": 2**18}
    gpu = torch.cuda.get_device_properties(x.device)
    return {
        "has_tma": gpu.major >= 9, "sms": gpu.multi_processor_count, "shared": gpu.shared_memory_per_block_optin,
    }  # fmt: skip


def run(x, y, has_tma, sms, shared):
    if not (x.numel() and y.numel()):
        return torch.zeros(x.shape[0], x.shape[1], y.shape[2], dtype=x.dtype, device=x.device)
    if x.dtype == torch.float32:
        return batched_tf32x3.multiply(x, y)
    if has_tma and is_for_descriptors(x, y, sms):
        return by_descriptor(x, y, sms, shared)
    return batched_pointers.multiply(x, y, has_tma and x.is_cuda)
