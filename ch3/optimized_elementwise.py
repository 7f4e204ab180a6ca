"""Apply an operation to every element, two accesses of 16 bytes a lane, found by counting, into `out`.

One kernel serves a family of operations: OP is known when it is compiled, so that each of them becomes a kernel of its
own, with one branch of `apply` in it. The matrix is taken as the vector that it is in memory, as in
`optimized_add.py` (one that is not contiguous is copied first; `out` is contiguous):

    at = pid * block + (0, 1, ... block - 1)    one addition for all elements of a lane, no division
    a lane's elements are adjacent              16 bytes an access: 4 float32, 8 float16

Types of 16 bits are computed in float32 and rounded once, as torch does.

Predict before you measure: memory has time for some 60 instructions an element of float32, half as many of float16.
Moving one takes 4. A gelu with an erf takes 32 more, with the shorter and coarser `upper_tail` that it has here 22; an
exp takes 5. Which operations are as fast as the simplest, and where is something to win against `library`?
"""

import torch
import triton
import triton.language as tl
from operations import BINARY, POSITIVE, SCALARS, TORCH, apply

SIZES = {
    "check": {"op": "add", "rows": 127, "columns": 129}, "check/one": {"op": "exp", "rows": 1, "columns": 1},
    "check/sub": {"op": "sub", "rows": 33, "columns": 127}, "check/mul": {"op": "mul", "rows": 33, "columns": 127},
    "check/div": {"op": "div", "rows": 33, "columns": 127}, "check/neg": {"op": "neg", "rows": 33, "columns": 127},
    "check/sin": {"op": "sin", "rows": 33, "columns": 127}, "check/cos": {"op": "cos", "rows": 33, "columns": 127},
    "check/log": {"op": "log", "rows": 33, "columns": 127}, "check/exp": {"op": "exp", "rows": 33, "columns": 127},
    "check/sqrt": {"op": "sqrt", "rows": 33, "columns": 127},
    "check/add_scalar": {"op": "add_scalar", "rows": 33, "columns": 127},
    "check/mul_scalar": {"op": "mul_scalar", "rows": 33, "columns": 127},
    "check/div_scalar": {"op": "div_scalar", "rows": 33, "columns": 127},
    "check/pow": {"op": "pow", "rows": 33, "columns": 127}, "check/relu": {"op": "relu", "rows": 33, "columns": 127},
    "check/gelu": {"op": "gelu", "rows": 33, "columns": 127},
    "check/gelu_tanh": {"op": "gelu_tanh", "rows": 33, "columns": 127},
    "check/silu": {"op": "silu", "rows": 33, "columns": 127},
    "check/div/fp16": {"op": "div", "rows": 33, "columns": 127, "dtype": "float16"},
    "check/gelu/bf16": {"op": "gelu", "rows": 33, "columns": 127, "dtype": "bfloat16"},
    "default": {"op": "gelu"},  # 8192 x 8192, as the large ones: 256 MiB of float32 a matrix, larger than any L2
    "small/mul": {"op": "mul", "rows": 512, "columns": 512}, "small/exp": {"op": "exp", "rows": 512, "columns": 512},
    "small/gelu": {"rows": 512, "columns": 512}, "small/silu": {"op": "silu", "rows": 512, "columns": 512},
    "medium/mul": {"op": "mul", "rows": 2048, "columns": 2048},
    "medium/exp": {"op": "exp", "rows": 2048, "columns": 2048}, "medium/gelu": {"rows": 2048, "columns": 2048},
    "medium/silu": {"op": "silu", "rows": 2048, "columns": 2048}, "large/add": {"op": "add"},
    "large/sub": {"op": "sub"}, "large/mul": {"op": "mul"}, "large/div": {"op": "div"}, "large/neg": {"op": "neg"},
    "large/sin": {"op": "sin"}, "large/cos": {"op": "cos"}, "large/log": {"op": "log"}, "large/exp": {"op": "exp"},
    "large/sqrt": {"op": "sqrt"}, "large/add_scalar": {"op": "add_scalar"}, "large/mul_scalar": {"op": "mul_scalar"},
    "large/div_scalar": {"op": "div_scalar"}, "large/pow": {"op": "pow"}, "large/relu": {"op": "relu"},
    "large/gelu": {}, "large/gelu_tanh": {"op": "gelu_tanh"}, "large/silu": {"op": "silu"},
    "large/mul/fp16": {"op": "mul", "dtype": "float16"}, "large/exp/fp16": {"op": "exp", "dtype": "float16"},
    "large/gelu/fp16": {"dtype": "float16"}, "large/gelu_tanh/fp16": {"op": "gelu_tanh", "dtype": "float16"},
    "large/silu/fp16": {"op": "silu", "dtype": "float16"}, "large/mul/bf16": {"op": "mul", "dtype": "bfloat16"},
    "large/gelu/bf16": {"dtype": "bfloat16"},
}  # fmt: skip


def inputs(op="gelu", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`y`: a matrix, a number or None, whatever the operation takes."""
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
def elementwise_kernel(x_ptr, y, out_ptr, n, OP: tl.constexpr, Y_IS_MATRIX: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64 bits: n may exceed 2^31
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    if Y_IS_MATRIX:
        y = tl.load(y + at, mask=inside).to(tl.float32)
    tl.store(out_ptr + at, apply(x, y, OP), mask=inside)


def run(op, x, y, out):
    n = x.numel()
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    y = y.contiguous() if op in BINARY else y
    block = 4096 // x.element_size()  # 128 lanes * 2 * 16 bytes
    grid = (triton.cdiv(n, block),)
    elementwise_kernel[grid](x.contiguous(), y, out, n, op, op in BINARY, BLOCK=block, num_warps=4)
    return out
