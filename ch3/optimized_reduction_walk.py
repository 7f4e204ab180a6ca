"""Sum a vector by few programs: four an SM walk over all of it, and leave one partial sum each for a second launch.

Problem: `baseline_reduction.py` starts a program for every 4 KiB. It loads once, adds up across its lanes, and ends.

Idea: four programs an SM divide the blocks of 16 KiB among them, however many blocks there are:

    program p    blocks p, p + programs, p + 2 programs, ...     each lane adds up in registers of its own
    at the end   one sum across the lanes, written to memory

A lane loads 4 * 16 bytes before it adds them, and the next block's loads need not wait for a program to start. Only
whole blocks are walked, without a mask, so any n is read 16 bytes at a time; the last program takes the remainder.

Cost: 4 bytes an element of float32, and 528 partial sums on an H200 instead of one for each 4 KiB. Still two launches.

Predict: at 256 Mi elements the baseline has 262,144 programs. How much is left to gain there, and how much at 1 Mi,
where it has 1024?
"""

import torch
import triton
import triton.language as tl


def inputs(n=67_108_864, dtype="float32", device="cuda"):
    return {"x": torch.rand(n, device=device).to(getattr(torch, dtype))}  # of one sign: nothing cancels


@triton.jit
def sum_kernel(x_ptr, partial_ptr, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    pid, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    n_blocks = n // BLOCK
    n_rest = n - n_blocks * BLOCK
    acc = tl.zeros((BLOCK,), tl.float32)
    x_ptrs = x_ptr + pid.to(tl.int64) * BLOCK + offsets
    for _ in range(pid, n_blocks, PROGRAMS):
        acc += tl.load(x_ptrs).to(tl.float32)
        x_ptrs += PROGRAMS * BLOCK
    if pid == PROGRAMS - 1:
        acc += tl.load(x_ptr + n_blocks * BLOCK + offsets, mask=offsets < n_rest, other=0.0).to(tl.float32)
    tl.store(partial_ptr + pid, tl.sum(acc, 0))


def run(x):
    x = x.contiguous()
    sms = 3 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    max_programs = 4 * sms  # of 8 warps, for which an SM has the registers; 64 KiB in flight to it
    programs = max(1, min(max_programs, x.nbytes // 16384))
    partial = torch.empty(programs, device=x.device)
    block = 16384 // x.element_size()  # 256 lanes * 4 * 16 bytes
    sum_kernel[(programs,)](x, partial, x.numel(), BLOCK=block, PROGRAMS=programs, num_warps=8)
    return partial.sum()
