"""Eighteen operations on every element, as torch knows them and as a Triton kernel computes them in float32."""

from functools import partial

import torch
import triton
import triton.language as tl

BINARY = ("add", "sub", "mul", "div")
POSITIVE = ("div", "log", "sqrt", "pow")  # operations that want positive inputs
SCALARS = {"add_scalar": 0.75, "mul_scalar": 0.75, "div_scalar": 0.75, "pow": 2.5}
ATEN = torch.ops.aten
TORCH = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "neg": torch.neg, "sin": torch.sin,
    "cos": torch.cos, "log": torch.log, "exp": torch.exp, "sqrt": torch.sqrt, "pow": torch.pow,
    "add_scalar": torch.add, "mul_scalar": torch.mul, "div_scalar": torch.div,
    "relu": partial(torch.clamp, min=0), "silu": ATEN.silu.out,  # torch.nn.functional's, which offers no `out`
    "gelu": ATEN.gelu.out, "gelu_tanh": partial(ATEN.gelu.out, approximate="tanh"),
}  # fmt: skip


@triton.jit
def apply(x, y, OP: tl.constexpr):  # noqa: C901 (a table)
    if OP == "add" or OP == "add_scalar":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul" or OP == "mul_scalar":
        z = x * y
    elif OP == "div" or OP == "div_scalar":
        z = tl.div_rn(x, y)
    elif OP == "neg":
        z = -x
    elif OP == "sin":
        z = tl.sin(x)  # and cos: the stack that X-ray finds is for arguments above 100,000
    elif OP == "cos":
        z = tl.cos(x)
    elif OP == "log":
        z = tl.log(x)
    elif OP == "exp":
        z = tl.exp(x)
    elif OP == "sqrt":
        z = tl.sqrt_rn(x)
    elif OP == "pow":
        z = tl.exp2(y * tl.log2(x))  # of numbers that are not negative; errors grow with y * log2(x), unlike in torch
    elif OP == "relu":
        z = tl.where(x < 0, 0.0, x)  # and not tl.maximum, which drops NaN
    elif OP == "gelu":
        z = x / 2 * (1 + tl.erf(x * 0.7071067811865476))  # 1 / sqrt(2)
    elif OP == "gelu_tanh":
        z = x / (1 + tl.exp(-1.5957691216057308 * x * (1 + 0.044715 * x * x)))  # 2 sqrt(2 / pi)
    elif OP == "silu":
        z = x / (1 + tl.exp(-x))
    else:
        tl.static_assert(False, "no such operation")
    return z
