"""Gate multivectors whose features lie side by side, blade after blade: a warp uses every byte that it fetches.

x is (8 blades, batch, features), contiguous: first one blade of all rows and features, then the next. A lane takes
features, since all blades of one are multiplied by the same phi(x[0]), and finds each blade in a plane of its own,
batch * features elements further on. Of one blade, a warp loads

    lane 0    [xxxx]
    lane 1        [xxxx]     ... side by side: 4 sectors of 32 bytes for 32 lanes, every byte used

and, where the planes begin at multiples of 16 bytes, four features a lane at once: 16 bytes an access. A matrix product
over features finds its operands in this order, too: a plane is a matrix [batch, features].

Predict before you measure: 2 u, u being the bytes of x, cross the memory bus in both versions. What does
`yardstick_copy`, which moves the same bytes and computes nothing, take beside this?
"""

import torch
import triton
import triton.language as tl


def inputs(dimensions=3, batch=4096, features=512, device="cuda"):
    return {"x": laid_out(torch.randn(2**dimensions, batch, features, device=device))}


def reference(x):
    return x * torch.special.ndtr(x[0])  # which is phi


def yardstick_copy(x):  # is the least that any gate moves
    return x.clone()


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write the answer


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
