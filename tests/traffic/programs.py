"""Small Triton kernels whose traffic is known by hand. Made as for a GPU: the counter has them interpreted."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def strided_kernel(x_ptr, y_ptr, n, stride, shift, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + shift + offsets * stride, mask=offsets < n)
    tl.store(y_ptr + offsets, doubled(x), mask=offsets < n)


@triton.jit
def masked_copy_kernel(x_ptr, y_ptr, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n, other=OTHER))


def masked_copy(x, y, n, other=None):
    masked_copy_kernel[(1,)](x, y, n, OTHER=other, BLOCK=x.numel())


@triton.jit
def doubled(x):
    return 2 * x


@triton.jit
def twice_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    largest = tl.max(tl.load(x_ptr + offsets), 0)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets) - largest)


@triton.jit
def add_up_kernel(x_ptr, sum_ptr, spread, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    tl.atomic_add(sum_ptr + offsets * spread, x)


@triton.jit
def claim_kernel(lock_ptr, x_ptr):
    taken = tl.atomic_cas(lock_ptr, 0, 1)
    tl.store(x_ptr + tl.program_id(0), taken)


@triton.jit
def claim_own_kernel(locks_ptr, locks):
    tl.atomic_add(locks_ptr + tl.program_id(0) % locks, 1)


@triton.jit
def tile_kernel(source, target, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    at = [tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N]
    target.store(at, source.load(at))


@triton.jit
def device_tile_kernel(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    at = [tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N]
    target.store(at, source.load(at))


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, PRECISION: tl.constexpr, SIZE: tl.constexpr, K: tl.constexpr):
    rows, columns, k = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, K)
    a = tl.load(a_ptr + rows * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * SIZE + columns)
    tl.store(c_ptr + rows * SIZE + columns, tl.dot(a, b, input_precision=PRECISION))


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def growing_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr, MOST: tl.constexpr):
    """Program i reads i + 1 blocks: no two of them ask for the same."""
    all_blocks, block = tl.arange(0, MOST), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + all_blocks, mask=all_blocks < (tl.program_id(0) + 1) * BLOCK, other=0.0)
    tl.store(y_ptr + tl.program_id(0) * BLOCK + block, tl.sum(x, 0) + tl.zeros([BLOCK], tl.float32))


@triton.jit
def failing_kernel(x_ptr):
    tl.inline_asm_elementwise("mov.b32 $0, 0;", "=r,r", [tl.load(x_ptr)], dtype=tl.int32, is_pure=True, pack=1)


def strided(x, n, stride=1, shift=0, block=128):
    y = torch.empty(n, dtype=x.dtype, device=x.device)
    strided_kernel[(triton.cdiv(n, block),)](x, y, n, stride, shift, BLOCK=block)
    return y


def twice(x, block=256):
    y = torch.empty_like(x)
    twice_kernel[(x.numel() // block,)](x, y, BLOCK=block)
    return y


def add_up(x, spread, block=64):
    total = torch.zeros(block, device=x.device)
    add_up_kernel[(x.numel() // block,)](x, total, spread, BLOCK=block)
    return total


def claim(programs):
    lock, x = torch.zeros(1, dtype=torch.int32), torch.empty(programs, dtype=torch.int32)
    claim_kernel[(programs,)](lock, x)
    return x


def claim_own(programs, shared=1):
    locks = programs // shared
    claim_own_kernel[(programs,)](torch.zeros(locks, dtype=torch.int32, device="meta"), locks)


def tiles(x, block=(16, 32)):
    y = torch.empty_like(x)
    source, target = (TensorDescriptor.from_tensor(t, list(block)) for t in (x, y))
    tile_kernel[tuple(map(triton.cdiv, x.shape, block))](source, target, *block)
    return y


def device_tiles(x, block=(16, 32)):
    y = torch.empty_like(x)
    device_tile_kernel[tuple(map(triton.cdiv, x.shape, block))](x, y, *x.shape, *block)
    return y


def product(a, b, precision="ieee"):
    c = torch.empty(len(a), b.shape[1], dtype=torch.float32, device=a.device)
    product_kernel[(1,)](a, b, c, PRECISION=precision, SIZE=len(a), K=a.shape[1])
    return c


def tuned(x):
    y = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y


def growing(x, programs, block=32):
    y = torch.empty(programs * block, device=x.device)
    growing_kernel[(programs,)](x, y, BLOCK=block, MOST=triton.next_power_of_2(programs * block))
    return y
