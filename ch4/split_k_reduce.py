"""Several programs share the k of a tile, and a second launch adds up: `optimized_split_k_split.py` says why.

The launch that adds up; and for few products of a long k, which tiles there are, and how many programs share one.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from launches import cdiv, launch, next_power_of_2

SMS = 128  # of a large GPU, nearly
LARGE = {  # tiles where there are so many that two programs for each SM share them
    "fp32": {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, "num_stages": 3, "num_warps": 4},
    "odd": {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8},
    "aligned": {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4},
}
SMALL = {  # four programs for each SM
    "fp32": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "num_stages": 3, "num_warps": 4},
    "odd": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 128, "num_stages": 3, "num_warps": 4},
    "aligned": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 128, "num_stages": 3, "num_warps": 4},
}
MANY = 16  # tiles, from which on they are large
LONG = {"fp32": 256, "odd": 512, "aligned": 512}  # k, from which on splitting gains more than a second launch costs


@triton.jit
def add_kernel(partials_ptr, c_ptr, size, splits, BLOCK: tl.constexpr, ROWS: tl.constexpr, OVERLAP: tl.constexpr):
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until all programs of the first kernel have written
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, splits, ROWS):
        split = start + tl.arange(0, ROWS).to(tl.int64)[:, None]
        acc += tl.load(partials_ptr + split * size + offsets, mask=(split < splits) & (offsets < size), other=0.0)
    tl.store(c_ptr + offsets, tl.sum(acc, 0, keep_dims=True), mask=offsets < size)


def add_up(partials, c, overlap):
    """partials[i], float32, added up over i into c. overlap: the kernel that writes them lets this one come early."""
    rows = max(min(next_power_of_2(len(partials)), 256), 16)
    block = 4096 // rows  # 8 loads of 16 bytes a thread
    grid, options = (cdiv(c.numel(), block),), {"num_warps": 4, "launch_pdl": overlap}
    launch(add_kernel, grid, partials, c, c.numel(), len(partials), BLOCK=block, ROWS=rows, OVERLAP=overlap, **options)


def tiles_of(config, M, N):
    return cdiv(M, config["BLOCK_M"]) * cdiv(N, config["BLOCK_N"])


@cache
def split(products, M, N, K, dtype, odd):
    """(The configuration, how many programs share a tile's k); (None, 1) where each program does better alone."""
    kind = "fp32" if dtype == torch.float32 else "odd" if odd else "aligned"
    if LONG[kind] > K:
        return None, 1
    large, small = LARGE[kind], SMALL[kind]
    tiles, fine = (products * tiles_of(config, M, N) for config in (large, small))
    config, programs = large, 2 * SMS
    if tiles < MANY or 4 * tiles >= 1.5 * fine:  # or large ones, of four small ones each, reach far beyond the edges
        config, programs, tiles = small, 4 * SMS, fine
    steps = cdiv(K, config["BLOCK_K"])
    splits = min(programs // max(tiles, 1), steps)
    return (config, cdiv(steps, cdiv(steps, splits))) if splits > 1 else (None, 1)
