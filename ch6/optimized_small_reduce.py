"""Sum 50 small tensors over all processes by reading the other GPUs' memory: one kernel and two waits for each sum.

Problem: in baseline_small_reduce.py most of a sum's time is no transfer. NCCL cuts a tensor into pieces, and hands
each piece from process to process through buffers of its own, in several steps.

Idea: torch's symmetric memory. All processes allocate a buffer of the same shape, and each knows the address of all
buffers. One kernel copies the tensor into its own buffer, waits until the others have done so, reads their buffers over
the link and adds (one-shot). Before it ends it waits again: until then the others may still read.

    GPU 0    [x0 into buffer 0][wait][buffer 0 + buffer 1][wait]
    GPU 1    [x1 into buffer 1][wait][buffer 0 + buffer 1][wait]

Cost: the copy into the buffer is a part of the timed work. The buffer itself is made once, in `setup`. Each of p
processes reads p - 1 whole tensors. With two that is what every all-reduce moves; with more it is p / 2 times as much.
Recorded, it is faster than the baseline on two H200s and slower on two H100s; `kernel` and `ll` are faster on both, by
times of the device, but the host needs the least time for this version.

Predict: with 8 processes and 450 GB/s, at which size do the bytes alone take 5 us?
"""

import torch
import torch.distributed as dist
from symmetric_memory import symmetric

DEVICE = "cuda"  # gloo has no symmetric memory
REQUIRES = {"gpus": 2}


def inputs(count=50, n=16_384, rank=0, ranks=2, device="cuda"):
    return {"xs": [torch.randn(ranks, n, device=device)[rank].clone() for _ in range(count)]}


def setup(xs):
    _, buffers = symmetric(xs[0].shape, xs[0].dtype, xs[0].device)
    return {"buffer": buffers[dist.get_rank()]}


def run(xs, buffer):
    group = dist.group.WORLD.group_name
    return [torch.ops.symm_mem.one_shot_all_reduce_copy(buffer, x.contiguous(), "sum", group) for x in xs]
