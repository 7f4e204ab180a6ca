"""Square a vector with the lanes of a warp 256 KiB apart: every lane fetches a 32-byte sector for 4 bytes of it.

Problem: the 32 loads of a warp become as few memory requests as their addresses allow. Memory arrives in sectors of 32
bytes, so

    adjacent lanes    32 * 4 = 128 bytes =  4 sectors, every byte used
    lanes far apart   32 sectors = 1024 bytes, 4 bytes of each used: 8x the sectors

Program `pid` of P takes the elements pid, pid + P, pid + 2 P, ...: together the programs take every element once. At
the default size P = 65,536 elements lie between neighbouring lanes.

Cost: 8 sectors for each that the answer needs, on the way in and out. The other 28 bytes of a sector are for the
programs beside this one, which run at the same time, so the L2 cache may still hold the sector when they ask for it.
A second cost: lanes that are not adjacent load and store 4 bytes an instruction, where adjacent lanes can move 16. So a
thread needs 8 loads and 8 stores instead of 2 and 2 (`benchmark.py --xray coalescing` shows both). The two versions
that follow change one of the two at a time: `adjacent` the sectors, then `wide` the instructions.

Predict: how many times slower than `optimized_coalescing_adjacent.py` is this if the number of sectors decides, and how
many times if L2 catches all that is fetched too often?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 9001},  # nine programs, the last one not full
    "count": {"n": 262_144},  # 256 programs: 1 KiB between the lanes of one
    "default": {"n": 67_108_864},  # 256 MiB of float32 in, 256 MiB out: larger than any L2
}


def inputs(n=67_108_864, device="cuda"):
    return {"x": torch.randn(n, device=device)}


def reference(x):
    return x * x


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


@triton.jit
def square_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    offsets = lane * tl.num_programs(0) + pid  # neighbours 256 KiB apart at the default size
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * x, mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    square_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
