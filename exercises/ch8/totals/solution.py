"""draft"""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, out_ptr, N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + row.to(tl.int64) * N + cols).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x * x) / N)


def inputs(rows=4_000_000, columns=256, device="cuda"):
    return {"x": torch.randn(rows, columns, dtype=torch.bfloat16, device=device)}


def run(x):
    out = torch.empty(len(x), device=x.device)
    square_kernel[(len(x),)](x, out, x.shape[1], num_warps=4)
    return out
