"""Multiply 16 rows by a long matrix with k split in 4: 256 programs read it together, and a second launch adds up.

c = x @ w_b, [16, 16,384] @ [16,384, 4096]. A tile of 16 x 64 belongs to 4 programs, each with 4096 of the 16,384
products of a sum. An SM has room for two of them and more (30 KiB of shared memory each), so that all run at once:

    256 programs * 3 blocks of 10 KiB = 7.5 MiB on the way    enough for any DRAM, if it takes 1 us

Four sums of each element go to memory in float32 and are added up by a second kernel, always in the same order, so
that equal inputs give equal bits:

    4 * 16 * 4096 * 4 bytes = 1 MiB written and read, from L2 if all goes well    against 128 MiB of w_b

From capability 9.0 on the second launch does not wait for the first one's end: its programs come to the SMs when the
first one's have all begun, and wait there (programmatic dependent launch). How often k is split depends on m, n and k.

Predict before you measure: if 2.0 TB/s was all that `baseline_split_k.py` could have, how much faster is this? And with
256 x 256 results and k = 65,536, where 32 sums of each element are kept: how many bytes are they, beside the inputs'?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SKINNY = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}  # up to 16 rows
SQUARE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}
PROGRAMS = 264  # at most, where k is split: 2 for each of 132 SMs


def inputs(m=16, n=4096, k=16_384, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    w_b = torch.randn(*((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(m, k, dtype=dtype, device=device), "w_b": w_b.T if transposed else w_b}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    kind = "fp16_flops" if x.dtype == torch.float16 else "bf16_flops"
    result = x.shape[0] * w_b.shape[1] * x.element_size()
    return {"dram_bytes": x.nbytes + w_b.nbytes + result, kind: 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, parts_ptr, m, n, k, depth, a_down, a_across, b_down, b_across,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()  # what comes next may be brought to the SMs, and wait there
    across, tiles = tl.cdiv(n, BLOCK_N), tl.cdiv(n, BLOCK_N) * tl.cdiv(m, BLOCK_M)
    tile, split = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    row = (tile // across * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]  # 64 bits: of offsets beyond 2^31
    column = (tile % across * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    inner = tl.arange(0, BLOCK_K)
    first = split * depth
    a_at = a_ptr + row * a_down + (first + inner).to(tl.int64)[None, :] * a_across
    b_at = b_ptr + (first + inner).to(tl.int64)[:, None] * b_down + column * b_across
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(first, min(first + depth, k), BLOCK_K):
        a = tl.load(a_at, mask=(row < m) & (inner[None, :] < k - start), other=0.0)
        b = tl.load(b_at, mask=(inner[:, None] < k - start) & (column < n), other=0.0)
        total = tl.dot(a, b, total)
        a_at += tl.full((), BLOCK_K, tl.int64) * a_across
        b_at += tl.full((), BLOCK_K, tl.int64) * b_down
    part = split.to(tl.int64) * m * n
    tl.store(parts_ptr + part + row * n + column, total, mask=(row < m) & (column < n))


@triton.jit
def add_kernel(parts_ptr, c_ptr, size, splits, BLOCK: tl.constexpr, ROWS: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until every program of the other kernel has written its sums
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(0, splits, ROWS):
        split = first + tl.arange(0, ROWS).to(tl.int64)[:, None]
        total += tl.load(parts_ptr + split * size + at, mask=(split < splits) & (at < size), other=0.0)
    tl.store(c_ptr + at, tl.sum(total, 0, keep_dims=True), mask=at < size)


def plan(m, n, k):
    """The configuration, how many tiles there are and how many programs share each, and how much of k one takes."""
    shape = SKINNY if m <= SKINNY["BLOCK_M"] else SQUARE
    tiles, steps = triton.cdiv(m, shape["BLOCK_M"]) * triton.cdiv(n, shape["BLOCK_N"]), triton.cdiv(k, shape["BLOCK_K"])
    each = max(triton.cdiv(steps, max(PROGRAMS // max(tiles, 1), 1)), 1)
    return shape, tiles, max(triton.cdiv(steps, each), 1), each * shape["BLOCK_K"]


def setup(x, w_b):
    return {"overlap": x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)}


def run(x, w_b, overlap):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, dtype=x.dtype, device=x.device)
    shape, tiles, splits, depth = plan(m, n, k)
    if c.numel():
        parts, strides = torch.empty(splits, m, n, device=x.device) if splits > 1 else c, (*x.stride(), *w_b.stride())
        matmul_kernel[(tiles * splits,)](x, w_b, parts, m, n, k, depth, *strides, **shape, OVERLAP=overlap)
    if c.numel() and splits > 1:
        rows = max(min(triton.next_power_of_2(splits), 256), 16)
        block = 4096 // rows  # 8 loads of 16 bytes a thread
        add_kernel[(triton.cdiv(m * n, block),)](
            parts, c, m * n, splits, BLOCK=block, ROWS=rows, OVERLAP=overlap, num_warps=4, launch_pdl=overlap
        )
    return c
