"""Sum a vector in one launch: the last program to finish adds up what the others have stored.

Problem: `optimized_reduction_walk.py` needs a second launch for a few hundred numbers.

Idea: programs cannot wait for each other, but the last one need not wait. Each counts itself when it has stored its
sum:

    at the end   one sum across the lanes, written to memory; then an atomic addition counts who has finished
    the last     sees that the others have, adds their sums in a fixed order, and sets the count to zero for next time

Cost: 4 bytes an element of float32, and an atomic addition for each program. The counter belongs to one stream: calls
at the same time on two streams need two counters.

Predict: what share of the measured limit does it reach at 1 Mi elements (4 MiB), and at 256 Mi?
"""

import torch
import triton
import triton.language as tl

VERSUS = "walk"


def inputs(n=67_108_864, dtype="float32", device="cuda"):
    return {"x": torch.rand(n, device=device).to(getattr(torch, dtype))}  # of one sign: nothing cancels


@triton.jit
def sum_kernel(x_ptr, partial_ptr, count_ptr, sum_ptr, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
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
    if tl.atomic_add(count_ptr, 1, sem="acq_rel") == PROGRAMS - 1:  # what others wrote before they counted is visible
        pids = tl.arange(0, triton.next_power_of_2(PROGRAMS))
        partial = tl.load(partial_ptr + pids, mask=pids < PROGRAMS, other=0.0, cache_modifier=".cg")
        tl.store(sum_ptr, tl.sum(partial, 0))
        tl.store(count_ptr, 0)


def setup(x):
    sms = 3 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    max_programs = 4 * sms  # of 8 warps, for which an SM has the registers; 64 KiB in flight to it
    programs = max(1, min(max_programs, x.nbytes // 16384))
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    return {"partial": torch.empty(programs, device=x.device), "count": count, "programs": programs}


def run(x, partial, count, programs):
    x, sum_ = x.contiguous(), torch.empty((), device=x.device)
    block = 16384 // x.element_size()  # 256 lanes * 4 * 16 bytes
    sum_kernel[(programs,)](x, partial, count, sum_, x.numel(), BLOCK=block, PROGRAMS=programs, num_warps=8)
    return sum_
