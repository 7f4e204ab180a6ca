"""Sum 50 small tensors over all processes with a kernel of our own: each sum waits once for the others, not twice.

Problem: in optimized_small_reduce.py a sum waits until the others have written, and again until they have read. Each
message is an atomic operation on the other GPU, whose reply must come back before the kernel goes on.

Idea: two buffers in turn. A sum writes the one that the sum before did not use, so only the first wait is left:

    sum 0    [x into half 0][tell][wait][read half 0 of the others]
    sum 1                                                          [x into half 1][tell][wait][read half 1 ...]

Sum 2 writes half 0 again, and may do so. It begins after sum 1, which has waited for every other process to begin its
sum 1. So every other process has ended its sum 0, and no longer reads half 0.

A message is the number of the sum, written into a flag in the receiver's memory. It needs no reply. The numbers grow,
so no flag is set back, and a process may be one sum ahead. Each program has flags of its own: it reads only what the
program of the same number has written on another GPU, and waits only for that one. `release` and `acquire` order tensor
and flag for the whole system (`sys`), not only for one GPU.

Cost: two halves in place of one buffer. The programs of a kernel must run at the same time: a program that waits keeps
its place on an SM, and the one that it waits for needs a place, too. So a sum has at most 64 programs. The copy into
the half is a part of the timed work.

Predict: suppose that a write over the link takes 1 us, a read 1.5 us. What is the least time of such a sum?
"""

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from symmetric_memory import symmetric

DEVICE = "cuda"  # gloo has no symmetric memory
REQUIRES = {"gpus": 2}
VERSUS = ""
PROGRAMS = 64


def inputs(count=50, n=16_384, rank=0, ranks=2, device="cuda"):
    return {"xs": [torch.randn(ranks, n, device=device)[rank].clone() for _ in range(count)]}


@triton.jit
def sum_kernel(x_ptr, out_ptr, halves, flags, n, RANK: tl.constexpr, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    mine = tl.program_id(0) * RANKS  # this program's flags: of each process, and its own count of sums
    number = tl.load(flags[RANK] + mine + RANK) + 1
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask, place = offsets < n, number % 2 * n + offsets
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(halves[RANK] + place, x, mask=mask)
    tl.debug_barrier()  # all threads of this program have written
    for rank in tl.static_range(RANKS):
        if rank != RANK:
            tl.atomic_xchg(flags[rank] + mine + RANK, number, sem="release", scope="sys")
    for rank in tl.static_range(RANKS):
        if rank != RANK:
            while tl.atomic_add(flags[RANK] + mine + rank, 0, sem="acquire", scope="sys") < number:
                pass
    tl.debug_barrier()  # no thread reads before the flags are there
    total = tl.zeros([BLOCK], x.dtype)
    for rank in tl.static_range(RANKS):  # in the same order everywhere: equal sums, bit by bit
        total += x if rank == RANK else tl.load(halves[rank] + place, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)
    tl.store(flags[RANK] + mine + RANK, number)


def setup(xs):
    x = xs[0]
    _, halves = symmetric((2, x.numel()), x.dtype, x.device)
    _, flags = symmetric((PROGRAMS, dist.get_world_size()), torch.int32, x.device)
    return {"halves": halves, "flags": flags}


def run(xs, halves, flags):
    n, rank = xs[0].numel(), dist.get_rank()
    BLOCK = max(1024, triton.next_power_of_2(triton.cdiv(n, PROGRAMS)))
    sums = [torch.empty(n, dtype=x.dtype, device=x.device) for x in xs]
    for x, out in zip(xs, sums, strict=True):
        grid = (triton.cdiv(n, BLOCK),)
        sum_kernel[grid](x.contiguous(), out, halves, flags, n, RANK=rank, RANKS=len(flags), BLOCK=BLOCK, num_warps=8)
    return sums
