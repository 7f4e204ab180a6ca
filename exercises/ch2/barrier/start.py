"""The length of a vector: each program stores its part, and after a barrier the last program adds the parts up.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device)}


@triton.jit
def length_kernel(x_ptr, parts_ptr, out_ptr, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    pid, programs = tl.program_id(0), tl.num_programs(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(parts_ptr + pid, tl.sum(x * x, 0))
    tl.debug_barrier()  # wait for all parts
    if pid == programs - 1:
        lanes = tl.arange(0, PARTS)
        parts = tl.load(parts_ptr + lanes, mask=lanes < programs, other=0.0)
        tl.store(out_ptr, tl.sqrt(tl.sum(parts, 0)))


def run(x):
    n = x.numel()
    programs = triton.cdiv(n, 4096)
    parts, out = torch.empty(programs, device=x.device), torch.empty(1, device=x.device)
    length_kernel[(programs,)](x, parts, out, n, BLOCK=4096, PARTS=triton.next_power_of_2(programs))
    return out
