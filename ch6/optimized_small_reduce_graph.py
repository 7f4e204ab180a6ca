"""Sum 50 small tensors over all processes by one graph replay: the host starts all 50 kernels with one call.

Problem: a sum of optimized_small_reduce_ll.py takes the device a few microseconds. The host needs longer than that to
launch its Triton kernel from Python, so the device waits.

Idea: a CUDA graph (chapter 1). `setup` records the 50 launches, and a call replays them. The kernels are those of `ll`:
they read the number of their sum from the GPU's memory and leave the next one there. So a replay needs nothing new.

    host    [copy the xs][replay]
    GPU                  [sum 0][sum 1][sum 2] ...

Cost: a graph reads recorded addresses, so all tensors are copied to these first: 3 MiB in one call. The answers lie in
the graph's memory until the next replay. All processes have to replay the same number of times.

Predict: suppose a sum takes 4 us on the device and its launch 30 us on the host. Which speedup over `ll` does a user
see, who waits for the last sum?
"""

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from symmetric_memory import symmetric

DEVICE = "cuda"  # gloo has no symmetric memory
REQUIRES = {"gpus": 2}
VERSUS = "ll"
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
    x, ranks, rank = xs[0], dist.get_world_size(), dist.get_rank()
    BLOCK = block_of(x.numel())
    _, words = symmetric((2, ranks, triton.cdiv(x.numel(), BLOCK) * BLOCK), torch.int64, x.device)
    _, numbers = symmetric((PROGRAMS,), torch.int32, x.device)  # it lives as long as the words: their numbers only grow
    grid, warps = (triton.cdiv(x.numel(), BLOCK),), min(BLOCK // (32 * WORDS), 16)
    static_xs, sums = ([torch.empty(x.numel(), dtype=x.dtype, device=x.device) for x in xs] for _ in range(2))

    def launches():
        for x, out in zip(static_xs, sums, strict=True):
            sum_kernel[grid](
                x, out, words, numbers[rank], x.numel(), RANK=rank, RANKS=ranks, BLOCK=BLOCK, num_warps=warps
            )

    launches()  # compiles the kernel: that may not happen during a capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # NCCL's own thread may ask for events meanwhile
        launches()
    return {"graph": graph, "static_xs": static_xs, "sums": sums}


def run(xs, graph, static_xs, sums):
    torch._foreach_copy_(static_xs, xs)  # one call for all
    graph.replay()
    return sums
