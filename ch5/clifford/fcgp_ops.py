"""The fully connected geometric product as a PyTorch operator: autograd, torch.compile and autocast see through it.

On a GPU (or in Triton's interpreter) it runs the kernels of fcgp.py, on a CPU the formulas of reference.py.
"""

import torch

from . import reference
from .sgp_ops import DTYPES, PATHS, at_least_float32, by_kernels, cast_if_asked, first_only

PRECISIONS = ("ieee", "tf32x3", "tf32")


def fcgp(x, y, W, normalized=True, precision="ieee"):
    """The product of the gated x and y, (D, B, N), with W, (P, N, N): what `reference.fcgp` computes.

    `precision` says how float32 is multiplied on a GPU: "ieee", "tf32x3" or "tf32" (fcgp.py explains each). Under
    autocast all three tensors are cast to its type. Raises ValueError for shapes, types or devices that do not fit.
    """
    x, y, W = cast_if_asked(x, y, W)
    check(x, y, W, precision)
    return torch.ops.clifford.fcgp(x, y, W, normalized, precision)[0]


def check(x, y, W, precision):
    """Raises ValueError, in one line, unless the operator takes these."""
    if x.dim() != 3 or x.shape[0] not in PATHS or x.shape[2] == 0:
        raise ValueError(f"x must be (4 or 8 blades, batch, features) with at least one feature, not {tuple(x.shape)}")
    paths, features = PATHS[int(x.shape[0])], x.shape[2]
    if y.shape != x.shape:
        raise ValueError(f"y must have the shape of x, {tuple(x.shape)}, not {tuple(y.shape)}")
    if W.shape != (paths, features, features):
        raise ValueError(f"W must be (paths, features, features), {(paths, features, features)}, not {tuple(W.shape)}")
    if not x.dtype == y.dtype == W.dtype:
        raise ValueError(f"x, y and W must be of one type, not {x.dtype}, {y.dtype} and {W.dtype}")
    if not x.device == y.device == W.device:
        raise ValueError(f"x, y and W must be on one device, not on {x.device}, {y.device} and {W.device}")
    if x.dtype not in DTYPES and not (x.is_cpu and x.dtype == torch.float64):
        raise ValueError(f"x must be of float32, float16 or bfloat16 (on a CPU also float64), not {x.dtype}")
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")


def roots(x, normalized):
    grades = int(x.shape[0]).bit_length()  # 3 for 4 blades, 4 for 8; a number also where shapes are symbols
    return x.new_zeros(grades if normalized else 0, x.shape[1], dtype=torch.float32)


@torch.library.custom_op("clifford::fcgp", mutates_args=())
def fcgp_forward(
    x: torch.Tensor, y: torch.Tensor, W: torch.Tensor, normalized: bool, precision: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, root): `root` is for the backward alone; zeros where the reference ran, whose backward needs none."""
    if not x.numel():
        return torch.empty_like(x, memory_format=torch.contiguous_format), roots(x, normalized)
    if not by_kernels(x):
        return reference.fcgp(*at_least_float32(x, y, W), normalized).to(x.dtype), roots(x, normalized)
    from .fcgp import forward  # here, as not every machine with a CPU has Triton

    with torch.cuda.device_of(x):
        return forward(x.contiguous(), y.contiguous(), W.contiguous(), normalized, precision)


@fcgp_forward.register_fake
def _(x, y, W, normalized, precision):
    return torch.empty_like(x, memory_format=torch.contiguous_format), roots(x, normalized)


@torch.library.custom_op("clifford::fcgp_backward", mutates_args=())
def fcgp_backward(
    dout: torch.Tensor, x: torch.Tensor, y: torch.Tensor, W: torch.Tensor, out: torch.Tensor, root: torch.Tensor,
    normalized: bool, precision: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """(dx, dy, dW), contiguous."""
    if not x.numel():
        return tuple(torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (x, y, W))
    if not by_kernels(x):
        found = reference.fcgp_backward(*at_least_float32(dout, x, y, W), normalized)
        return tuple(t.to(x.dtype).contiguous() for t in found)
    from .fcgp import backward

    with torch.cuda.device_of(x):
        return backward(dout.contiguous(), *(t.contiguous() for t in (x, y, W)), out, root, precision)


@fcgp_backward.register_fake
def _(dout, x, y, W, out, root, normalized, precision):
    return tuple(torch.empty_like(t, memory_format=torch.contiguous_format) for t in (x, y, W))


fcgp_backward.register_autograd(first_only("fcgp"))


def _keep(ctx, inputs, output):
    x, y, W, ctx.normalized, ctx.precision = inputs
    out, root = output
    ctx.save_for_backward(x, y, W, *((out, root) if ctx.normalized else (root, root)))  # out is read only if normalized


def _gradients(ctx, dout, _):
    return *torch.ops.clifford.fcgp_backward(dout, *ctx.saved_tensors, ctx.normalized, ctx.precision), None, None


fcgp_forward.register_autograd(_gradients, setup_context=_keep)
