"""The length of a vector: one launch stores the parts, the next one adds them up and takes the root.

A barrier holds the threads of one program, and no other program. So nothing kept the last program from reading parts
that were not written yet. Programs of one launch have no promised order, and some of them start only when others have
ended: a barrier for all of them cannot exist there. The next launch begins when all programs of the one before have
ended, and sees all that they have stored. Another way needs one launch: a counter that each program raises with release
and acquire, after its store. Whoever finds that all others were there before adds the parts up.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 10_000}, "check/one": {"n": 1}, "check/whole": {"n": 8192}, "check/long": {"n": 40_961},
    "count": {"n": 32_768}, "default": {"n": 16_777_216},
}  # fmt: skip


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device)}


def reference(x):
    return (x * x).sum().sqrt().reshape(1)


def cost(x):
    return {"dram_bytes": x.nbytes + 4}  # read x, write one number


@triton.jit
def parts_kernel(x_ptr, parts_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(parts_ptr + pid, tl.sum(x * x, 0))


@triton.jit
def length_kernel(parts_ptr, out_ptr, programs, PARTS: tl.constexpr):
    lanes = tl.arange(0, PARTS)
    parts = tl.load(parts_ptr + lanes, mask=lanes < programs, other=0.0)
    tl.store(out_ptr, tl.sqrt(tl.sum(parts, 0)))


def run(x):
    n = x.numel()
    programs = triton.cdiv(n, 4096)
    parts, out = torch.empty(programs, device=x.device), torch.empty(1, device=x.device)
    parts_kernel[(programs,)](x, parts, n, BLOCK=4096)
    length_kernel[(1,)](parts, out, programs, PARTS=triton.next_power_of_2(programs))
    return out
