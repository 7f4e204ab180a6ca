"""Gate multivectors whose blades are adjacent in memory: each lane uses 4 of the 32 bytes of its sector.

Problem: x has 8 blades, `batch` rows and `features` features. In memory the 8 blades of one feature follow each other,
[batch, feature, blade]. One lane takes one feature, because all blades of a feature are multiplied by the same
phi(x[0]). One load instruction fetches one blade for the 32 lanes of a warp:

    lane 0    [xxxx............................]     4 of a sector's 32 bytes
    lane 1    [xxxx............................]     ... 32 sectors in all, where 128 adjacent bytes are 4

Cost: the other 7 loads need the rest of the same sectors, and so do the 8 stores. If a cache keeps the sectors until
then, DRAM carries 2 u, the least (u: the bytes of x). But each of the 16 instructions asks for 32 sectors instead of 4:
loads ask L1, stores ask L2.
Predict: between SMs and caches 8x the sectors of `optimized_layout.py` move, from and to DRAM the same bytes. How many
times slower is this version?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"batch": 3, "features": 127}, "check/one": {"batch": 1, "features": 1},
    "check/2d": {"dimensions": 2, "batch": 5, "features": 129}, "check/several": {"batch": 67, "features": 33},
    "count": {"batch": 64, "features": 512},
    "default": {"batch": 4096, "features": 512},  # 64 MiB of float32 in, 64 MiB out: larger than an L2
}  # fmt: skip


def inputs(dimensions=3, batch=4096, features=512, device="cuda"):
    return {"x": laid_out(torch.randn(2**dimensions, batch, features, device=device))}


def reference(x):
    return x * torch.special.ndtr(x[0])  # which is phi


def yardstick_copy(x):  # is the least that any gate moves
    return x.clone()


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write the answer


def laid_out(x):
    return x.permute(1, 2, 0).contiguous().permute(2, 0, 1)


@triton.jit
def gate_kernel(x_ptr, out_ptr, size, D: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)  # 64 bits: there may be more than 2^31 elements
    feature = pid * BLOCK + tl.arange(0, BLOCK)
    mask = feature < size
    offsets, stride_d = feature * D, 1  # neighbours D elements apart
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
