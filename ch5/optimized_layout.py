"""Gate multivectors whose features are adjacent in memory: a warp uses every byte that it fetches.

Problem: in `baseline_layout.py` neighbouring lanes read 4 bytes each, 32 bytes apart.
Idea: x is (8 blades, batch, features), contiguous: first one blade of all rows and features, then the next blade. A
lane still takes a feature. It finds each blade in a plane of its own, batch * features elements further on:

    lane 0    [xxxx]
    lane 1        [xxxx]     ... adjacent: 4 sectors of 32 bytes for 32 lanes, every byte used

Cost: 2 u (u: the bytes of x), in DRAM and in the caches. Where the planes begin at multiples of 16 bytes, one access
loads 4 features, 16 bytes. A matrix product over features needs this order, too: a plane is a matrix [batch, features].
Predict: `yardstick_copy` moves the same 2 u and computes nothing; the gate computes an erf for each feature. How many
percent of the copy's time does the gate take?
"""

import torch
import triton
import triton.language as tl


def inputs(dimensions=3, batch=4096, features=512, device="cuda"):
    return {"x": laid_out(torch.randn(2**dimensions, batch, features, device=device))}


def laid_out(x):
    return x.contiguous()


@triton.jit
def gate_kernel(x_ptr, out_ptr, size, D: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)  # 64 bits: there may be more than 2^31 elements
    feature = pid * BLOCK + tl.arange(0, BLOCK)
    mask = feature < size
    offsets, stride_d = feature, tl.cast(size, tl.int64)  # neighbours adjacent
    x = tl.load(x_ptr + offsets, mask=mask)
    phi = 0.5 + 0.5 * tl.erf(x * 0.7071067811865476)
    tl.store(out_ptr + offsets, x * phi, mask=mask)
    for i in tl.static_range(1, D):
        x = tl.load(x_ptr + offsets + i * stride_d, mask=mask)
        tl.store(out_ptr + offsets + i * stride_d, x * phi, mask=mask)


def run(x):
    x = laid_out(x)  # as it is already
    out = torch.empty_like(x)
    size = x[0].numel()
    gate_kernel[(triton.cdiv(size, 512),)](x, out, size, D=len(x), BLOCK=512, num_warps=4)
    return out
