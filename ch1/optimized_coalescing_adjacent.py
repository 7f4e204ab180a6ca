"""Square a vector with the lanes of a warp side by side: 32 lanes share four 32-byte sectors and use all of them.

Problem: in the baseline the lanes of a warp are 256 KiB apart: each fetches a sector of its own and uses 4 bytes of it.

Idea: program `pid` takes the 1024 elements from pid * 1024 on, so neighbouring lanes take neighbouring elements:

    adjacent lanes    32 * 4 = 128 bytes =  4 sectors, every byte used
    lanes far apart   32 sectors = 1024 bytes, 4 bytes of each used: 8x the sectors

From adjacent lanes the compiler would also make wider loads, which are a second idea. It must know for that where the
arrays begin. `do_not_specialize_on_alignment` keeps this from it, so a lane still loads and stores 4 bytes at a time.

Cost: as many instructions as the baseline, 8 loads and 8 stores a thread.

Predict: `optimized_coalescing_wide.py` moves 16 bytes an instruction. Which of the two steps gains more, the one from
the baseline to this version, or the one from here?
"""

import torch
import triton
import triton.language as tl


def inputs(n=67_108_864, device="cuda"):
    return {"x": torch.randn(n, device=device)}


@triton.jit(do_not_specialize_on_alignment=["x_ptr", "y_ptr"])  # 4 bytes a lane: they may begin anywhere
def square_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    offsets = pid * BLOCK + lane  # neighbours adjacent
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * x, mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    square_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
