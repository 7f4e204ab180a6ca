"""float32 out of three TF32 products, by the tile: `optimized_batched_matmul_tf32x3.py` says why it is right.

Numbers have to be in registers to be split. So they are loaded there, one by one, wherever rows begin, and the next
block's loads are under way while this block is multiplied. Tensor cores want their second operand with neighbours along
k side by side. Rows of x lie so, and rows of y do not: this kernel multiplies the transposed matrices, y^T by x^T.
"""

import torch
import triton
import triton.language as tl
from split_k_reduce import tiles_of

SMS = 132  # of an H100 or H200
LARGEST = tl.constexpr(2.0**128 - 2.0**117)  # of TF32
# (the time of a program alone on its SM, of two beside each other, tile), measured on an H100
TILES = [
    (1.0, 2.0, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 16, "num_warps": 8}),
    (0.37, 0.6, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4}),
    (0.34, 0.43, {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4}),
]


@triton.jit
def split_tf32(x):
    """x rounded to TF32, and the rest. Of an infinity: TF32's largest number, since 0 times that is 0, and infinity."""
    high = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    high = tl.clamp(high, -LARGEST, LARGEST)
    return high, x - high


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, FAR: tl.constexpr, SHORT: tl.constexpr,
):  # fmt: skip
    num_pid_n, num_tiles = tl.cdiv(N, BLOCK_N), tl.cdiv(N, BLOCK_N) * tl.cdiv(M, BLOCK_M)
    pid, pid_b = tl.program_id(0) % num_tiles, (tl.program_id(0) // num_tiles).to(tl.int64)
    first_m, first_n = pid // num_pid_n * BLOCK_M, pid % num_pid_n * BLOCK_N
    a_ptr += pid_b * stride_ab + first_m.to(tl.int64) * stride_am
    b_ptr += pid_b * stride_bb + first_n.to(tl.int64) * stride_bn
    c_ptr += pid_b * M * N + first_m.to(tl.int64) * N + first_n
    offs_m, offs_n, offs_k = tl.arange(0, BLOCK_M)[None, :], tl.arange(0, BLOCK_N)[:, None], tl.arange(0, BLOCK_K)
    rows, columns = M - first_m, N - first_n
    # beyond the edge the last row is read again, and is not stored
    at_m, at_n, at_k = tl.minimum(offs_m, rows - 1), tl.minimum(offs_n, columns - 1), offs_k
    if SHORT:  # k is less than a block
        at_k = tl.minimum(offs_k, K - 1)
    if FAR:  # 64 bits: a tile's offsets may exceed 2^31
        at_m, at_n, at_k = at_m.to(tl.int64), at_n.to(tl.int64), at_k.to(tl.int64)
    a_ptrs = a_ptr + (at_k[:, None] * stride_ak + at_m * stride_am)
    b_ptrs = b_ptr + (at_n * stride_bn + at_k[None, :] * stride_bk)
    steps = tl.cdiv(K, BLOCK_K)
    first = K - tl.maximum(steps - 1, 0) * BLOCK_K  # what whole blocks leave comes first: no other block has a mask
    a = tl.load(a_ptrs, mask=offs_k[:, None] < first, other=0.0)
    b = tl.load(b_ptrs, mask=offs_k[None, :] < first, other=0.0)
    acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for i in tl.range(1, steps + 1, num_stages=1):
        # after the last block there is no next one: it is read again, and not used, so that no load needs a mask
        step = tl.where(i < steps, tl.where(i > 1, BLOCK_K, first), 0).to(tl.int64)
        a_ptrs += step * stride_ak
        b_ptrs += step * stride_bk
        next_a, next_b = tl.load(a_ptrs), tl.load(b_ptrs)
        high_a, low_a = split_tf32(a)
        high_b, low_b = split_tf32(b)
        part = tl.dot(low_b, high_a, input_precision="tf32")
        part = tl.dot(high_b, low_a, part, input_precision="tf32")
        acc += tl.dot(high_b, high_a, part, input_precision="tf32")
        a, b = next_a, next_b
    tl.store(c_ptr + offs_m.to(tl.int64) * N + offs_n, acc, mask=(offs_m < rows) & (offs_n < columns))


def tile_of(products, M, N):
    """The tile of which all programs take the least time."""

    def time(alone, both, tile):
        programs = triton.cdiv(products * tiles_of(tile, M, N), SMS)  # of an SM
        return programs // 2 * both + programs % 2 * alone

    return min(TILES, key=lambda each: time(*each))[-1]


def multiply(x, y):
    (batch, M, K), N = x.shape, y.shape[2]
    c, tile = torch.empty(batch, M, N, dtype=x.dtype, device=x.device), tile_of(batch, M, N)
    far = max(*x.stride()[1:], *y.stride()[1:]) > 2**23  # times a tile's 128 rows: 2^30
    matmul_kernel[(batch * tiles_of(tile, M, N),)](
        x, y, c, M, N, K, *x.stride(), *y.stride(), **tile, FAR=far, SHORT=tile["BLOCK_K"] > K
    )
    return c
