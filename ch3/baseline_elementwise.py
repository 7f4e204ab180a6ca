"""Apply an operation to every element by strides: one element a lane, found by row and column, 4 bytes an access.

Problem: a lane has one element, and finds it by a division as in `baseline_add.py`:

    rows, cols = offsets // n_cols, offsets % n_cols     integers: half of some 50 instructions an element (--xray)
    x_ptr + rows * stride_xm + cols * stride_xn          two strides a tensor: any layout is read as it lies

One kernel serves eighteen operations: OP is known when it is compiled, so each of them becomes a kernel of its own,
with one branch of `apply` in it. Types of 16 bits are computed in float32 and rounded once, as torch does.

Cost: 8 bytes an element of float32 (one read, one write), 4 of float16; 12 and 6 where there are two inputs.

Predict: an H200 moves 4.8 TB/s and computes 67 TFLOP/s in float32 (datasheet), where a multiply-add is one instruction
of a lane and two FLOPs. How many instructions an element of float32 may cost before memory is no longer the limit?
"""

import torch
import triton
import triton.language as tl
from operations import BINARY, POSITIVE, SCALARS, TORCH, apply

SIZES = {
    "check": {"op": "add", "rows": 33, "columns": 67}, "check/one": {"op": "exp", "rows": 1, "columns": 1},
    "check/sub": {"op": "sub", "rows": 3, "columns": 67}, "check/mul": {"op": "mul", "rows": 3, "columns": 67},
    "check/div": {"op": "div", "rows": 3, "columns": 67}, "check/neg": {"op": "neg", "rows": 3, "columns": 67},
    "check/sin": {"op": "sin", "rows": 3, "columns": 67}, "check/cos": {"op": "cos", "rows": 3, "columns": 67},
    "check/log": {"op": "log", "rows": 3, "columns": 67}, "check/exp": {"op": "exp", "rows": 3, "columns": 67},
    "check/sqrt": {"op": "sqrt", "rows": 3, "columns": 67},
    "check/add_scalar": {"op": "add_scalar", "rows": 3, "columns": 67},
    "check/mul_scalar": {"op": "mul_scalar", "rows": 3, "columns": 67},
    "check/div_scalar": {"op": "div_scalar", "rows": 3, "columns": 67},
    "check/pow": {"op": "pow", "rows": 3, "columns": 67}, "check/relu": {"op": "relu", "rows": 3, "columns": 67},
    "check/gelu": {"op": "gelu", "rows": 3, "columns": 67},
    "check/gelu_tanh": {"op": "gelu_tanh", "rows": 3, "columns": 67},
    "check/silu": {"op": "silu", "rows": 3, "columns": 67},
    "check/div/fp16": {"op": "div", "rows": 33, "columns": 67, "dtype": "float16"},
    "check/silu/bf16": {"op": "silu", "rows": 3, "columns": 27, "dtype": "bfloat16"},
    "check/tuned/tail/fp16": {"op": "div", "rows": 33, "columns": 527, "dtype": "float16"},
    "check/tuned/gelu/bf16": {"op": "gelu", "rows": 33, "columns": 527, "dtype": "bfloat16"},
    "count": {"rows": 64, "columns": 1024},
    "default": {"op": "gelu"},  # 8192 x 8192, as the large ones: 256 MiB of float32 a matrix, larger than any L2
    "large/exp": {"op": "exp"},
}  # fmt: skip


def inputs(op="gelu", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`y`: a matrix, a number or None, as the operation needs it."""
    draw, least = (torch.rand, 0.5) if op in POSITIVE else (torch.randn, 0.0)
    x, y = (draw(rows, columns, dtype=getattr(torch, dtype), device=device) + least for _ in range(2))
    return {"op": op, "x": x, "y": y if op in BINARY else SCALARS.get(op), "out": torch.empty_like(x)}


def reference(op, x, y, out):
    return library(op, x, y, torch.empty_like(x))


def library(op, x, y, out):
    return TORCH[op](x, out=out) if y is None else TORCH[op](x, y, out=out)


def cost(op, x, y, out):
    return {"dram_bytes": (3 if op in BINARY else 2) * x.nbytes}  # read x, and y where it is a matrix; write the result


@triton.jit
def elementwise_kernel(
    x_ptr, y, out_ptr, n, n_cols, stride_xm, stride_xn, stride_ym, stride_yn,
    OP: tl.constexpr, Y_IS_MATRIX: tl.constexpr, INDEX: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    offsets = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    rows, cols = (offsets // n_cols).to(tl.int64), (offsets % n_cols).to(tl.int64)  # times a stride may exceed 2^31
    x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask).to(tl.float32)
    if Y_IS_MATRIX:
        y = tl.load(y + rows * stride_ym + cols * stride_yn, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, apply(x, y, OP), mask=mask)


def run(op, x, y, out):
    n = x.numel()
    result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    y_strides = y.stride() if op in BINARY else (0, 0)
    index = tl.int32 if n <= 2**30 else tl.int64  # 64 bits where 32 could overflow: dividing them takes much longer
    elementwise_kernel[(triton.cdiv(n, 128),)](
        x, y, result, n, x.shape[1], *x.stride(), *y_strides, op, op in BINARY, INDEX=index, BLOCK=128, num_warps=4
    )
    return result
