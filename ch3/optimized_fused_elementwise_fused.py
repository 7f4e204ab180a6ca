"""Apply scale, shift, SiLU, gate and residual in one kernel: three matrices of 128 MiB move, the rest are registers.

Problem: the five kernels of `baseline_fused_elementwise.py` leave four intermediate matrices in memory.

Idea: y = silu(scale * x + shift) * gate + x in one kernel, which keeps every intermediate value in a register. A
program takes 1024 elements of a row, and the same elements of the two vectors:

    reads     x, gate          two matrices
              scale, shift     two vectors, which all rows share, from L2
    writes    y                one matrix

Cost: 3 matrices instead of 12, and one launch instead of five. A program also asks for 2 * 4 KiB of the vectors, beside
3 * 4 KiB that memory has to move. SiLU adds an exponential and a division for each element.

Predict: `library_compiled` is torch.compile, which makes one kernel of the same chain. How many times this version's
time does it take?
"""

import torch
import triton
import triton.language as tl


def inputs(rows=8192, columns=4096, dtype="float32", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, gate = torch.randn(rows, columns, **like), torch.randn(rows, columns, **like)
    return {"x": x, "gate": gate, "w_scale": torch.randn(columns, **like), "w_shift": torch.randn(columns, **like)}


@triton.jit
def chain_kernel(x_ptr, gate_ptr, scale_ptr, shift_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    num_pid_n = tl.cdiv(n_cols, BLOCK)  # programs side by side in a row
    row_start = (tl.program_id(0) // num_pid_n).to(tl.int64) * n_cols  # 64 bits: there may be 2^31 elements
    cols = (tl.program_id(0) % num_pid_n).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row_start + cols, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + row_start + cols, mask=mask).to(tl.float32)
    scale = tl.load(scale_ptr + cols, mask=mask).to(tl.float32)
    shift = tl.load(shift_ptr + cols, mask=mask).to(tl.float32)
    scaled = scale * x + shift
    tl.store(out_ptr + row_start + cols, scaled / (1 + tl.exp(-scaled)) * gate + x, mask=mask)


def run(x, gate, w_scale, w_shift):
    x, gate, w_scale, w_shift = (tensor.contiguous() for tensor in (x, gate, w_scale, w_shift))
    y, (rows, columns) = torch.empty_like(x), x.shape
    if y.numel():
        grid = (rows * triton.cdiv(columns, 1024),)
        chain_kernel[grid](x, gate, w_scale, w_shift, y, columns, BLOCK=1024, num_warps=4)
    return y
