"""Sum 50 small tensors over all processes with the flag in each word: nothing is read over the link (LL, as in NCCL).

Problem: in optimized_small_reduce_kernel.py a message crosses the link, and only then the read begins, which crosses it
twice: the request and the data. Before the message the kernel waits until its own tensor is written.

Idea: write instead of read, and let each word say by itself that it has come. A word of 8 bytes has 4 bytes of the
tensor and 4 of the number of the sum. It arrives whole, so no order between words is needed:

    sum k    [(x, k) into the others' memory][read the own memory until every word says k][add]

A process has two places for each other process, and sums use them in turn. Sum k + 2 overwrites the words of sum k, and
may do so. It begins after sum k + 1, which has waited for words that the others wrote after their sum k.

Cost: twice the bytes over the link. So this is for small tensors. NCCL calls it LL, for low latency, and takes another
protocol for larger ones. This kernel sums float32 only.

Predict: suppose that a write over the link takes 1 us, a launch 1.5 us. What is the least time of such a sum? At which
size S do its 2 S bytes take as long as that, at 250 GB/s?
"""

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from symmetric_memory import symmetric

DEVICE = "cuda"  # gloo has no symmetric memory
REQUIRES = {"gpus": 2}
VERSUS = "kernel"
PROGRAMS = 64  # all run at the same time, as they wait for each other
WORDS = 8  # of each lane: four stores of 16 bytes


def inputs(count=50, n=16_384, rank=0, ranks=2, device="cuda"):
    return {"xs": [torch.randn(ranks, n, device=device)[rank].clone() for _ in range(count)]}


@triton.jit
def sum_kernel(x_ptr, out_ptr, words, numbers_ptr, n, RANK: tl.constexpr, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    pid, size = tl.program_id(0), tl.num_programs(0) * BLOCK
    number = tl.load(numbers_ptr + pid) + 1
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask, half = offsets < n, number % 2 * RANKS * size
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    word = number.to(tl.int64) << 32 | x.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    for rank in tl.static_range(RANKS):
        if rank != RANK:
            tl.store(words[rank] + half + RANK * size + offsets, word)  # stores of 16 bytes: each word is whole
    total = tl.zeros([BLOCK], tl.float32)
    for rank in tl.static_range(RANKS):  # in the same order everywhere: equal sums, bit by bit
        if rank == RANK:
            total += x
        else:
            place = words[RANK] + half + rank * size + offsets
            word = tl.load(place, volatile=True)
            while tl.min((word >> 32).to(tl.int32)) < number:
                word = tl.load(place, volatile=True)
            total += word.to(tl.int32).to(tl.float32, bitcast=True)
    tl.store(out_ptr + offsets, total, mask=mask)
    tl.store(numbers_ptr + pid, number)


def block_of(n):
    return max(32 * WORDS, triton.next_power_of_2(triton.cdiv(n, PROGRAMS)))


def setup(xs):
    x, ranks = xs[0], dist.get_world_size()
    block = block_of(x.numel())
    _, words = symmetric((2, ranks, triton.cdiv(x.numel(), block) * block), torch.int64, x.device)
    _, numbers = symmetric((PROGRAMS,), torch.int32, x.device)  # it lives as long as the words: their numbers only grow
    return {"words": words, "numbers": numbers[dist.get_rank()]}


def run(xs, words, numbers):
    n, rank = xs[0].numel(), dist.get_rank()
    BLOCK = block_of(n)
    sums = [torch.empty(n, dtype=x.dtype, device=x.device) for x in xs]
    grid, warps = (triton.cdiv(n, BLOCK),), min(BLOCK // (32 * WORDS), 16)
    for x, out in zip(xs, sums, strict=True):
        sum_kernel[grid](
            x.contiguous(), out, words, numbers, n, RANK=rank, RANKS=len(words), BLOCK=BLOCK, num_warps=warps
        )
    return sums
