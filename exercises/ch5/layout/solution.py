"""Gate multivectors whose blades are adjacent in memory, and write them blade by blade: one load, a tile of all blades.

The tile is [BLOCK, 8]. Blades are adjacent where it is loaded (strides 8 and 1), features are adjacent where it is
stored (strides 1 and n). Each sector is asked for once on both sides. Triton moves the numbers between the threads, by
way of shared memory. The scalar blade is a column of the tile: `tl.where` sets all others to 0, and `tl.sum` adds them.
Only a tile that has whole sectors in both orders can do this: 8 blades are 32 bytes, and 256 features are 1024.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"batch": 3, "features": 127}, "check/one": {"batch": 1, "features": 1},
    "check/several": {"batch": 5, "features": 257}, "check/wide": {"batch": 2, "features": 1100},
    "count": {"batch": 4, "features": 512}, "default": {"batch": 4096, "features": 512},
}  # fmt: skip


def inputs(batch, features, device="cuda"):
    return {"x": torch.randn(batch, features, 8, device=device)}


def reference(x):
    return (x * torch.special.ndtr(x[:, :, :1])).permute(2, 0, 1)


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}


@triton.jit
def gate_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """n: the number of multivectors, which is the number of elements of one blade of the answer."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    blade = tl.arange(0, 8)
    x = tl.load(x_ptr + 8 * place[:, None] + blade[None, :], mask=mask[:, None], other=0.0)
    x0 = tl.sum(tl.where(blade[None, :] == 0, x, 0.0), axis=1)
    phi = 0.5 + 0.5 * tl.erf(x0 * 0.7071067811865476)
    tl.store(out_ptr + blade[None, :] * n + place[:, None], x * phi[:, None], mask=mask[:, None])


def run(x):
    batch, features, _ = x.shape
    out, n = torch.empty(8, batch, features, device=x.device), batch * features
    gate_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
