"""Softmax of every row in one pass. Nothing is computed yet: the kernel copies 16 columns of x.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(rows, columns, device="cuda"):
    x = torch.randn(rows, columns, device=device) - 5
    x = x.masked_fill(torch.rand_like(x) < 0.1, float("-inf"))  # as attention masks a score
    x[1:2] = float("-inf")  # the second row has nothing else
    return {"x": x}


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("-inf"))
    exp = tl.exp2((x - tl.max(x, 0)) * 1.4426950408889634)  # exp2 is one instruction
    tl.store(y_ptr + row * n_cols + cols, exp * (1 / tl.sum(exp, 0)), mask=cols < n_cols)


def run(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 512, 1), 32)  # 16 elements a thread
    softmax_kernel[(rows,)](x, y, columns, BLOCK=block, num_warps=warps)
    return y
