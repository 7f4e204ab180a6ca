"""The weighted geometric product as a PyTorch operator: autograd, torch.compile and autocast see through it.

On a GPU (or in Triton's interpreter) it runs the kernels of sgp.py, on a CPU the formulas of reference.py.
"""

import os

import torch

from . import reference
from .algebra import algebra

PATHS = {2**dimensions: len(algebra(dimensions).paths) for dimensions in (2, 3)}  # by the number of blades
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def sgp(x, y, w, normalized=True):
    """The product of the gated x and y, (D, B, N), weighted by w, (N, P): what `reference.sgp` computes.

    Best keep w as (P, N) and pass its transpose: any other order is copied. w may have another type than x and y: under
    autocast x and y are cast, and w stays float32. On a GPU sums are float32, whatever the type. Raises ValueError for
    shapes, types or devices that do not fit.
    """
    x, y = cast_if_asked(x, y)
    check(x, y, w)
    return torch.ops.clifford.sgp(x, y, w, normalized)


def autocast_is_on(device):
    return device.type != "meta" and torch.is_autocast_enabled(device.type)  # which is asked of no 'meta': that raises


def cast_if_asked(*tensors):
    """The tensors in the type of autocast, where it is on."""
    device = tensors[0].device
    return tuple(t.to(torch.get_autocast_dtype(device.type)) for t in tensors) if autocast_is_on(device) else tensors


def check(x, y, w):
    """Raises ValueError, in one line, unless the operator takes these."""
    if x.dim() != 3 or x.shape[0] not in PATHS or x.shape[2] == 0:
        raise ValueError(f"x must be (4 or 8 blades, batch, features) with at least one feature, not {tuple(x.shape)}")
    if y.shape != x.shape:
        raise ValueError(f"y must have the shape of x, {tuple(x.shape)}, not {tuple(y.shape)}")
    weights = (x.shape[2], PATHS[int(x.shape[0])])
    if w.shape != weights:
        raise ValueError(f"w must be (features, paths), {weights}, not {tuple(w.shape)}")
    if x.dtype != y.dtype:
        raise ValueError(f"x and y must be of one type, not {x.dtype} and {y.dtype}")
    if not x.device == y.device == w.device:
        raise ValueError(f"x, y and w must be on one device, not on {x.device}, {y.device} and {w.device}")
    for name, tensor in (("x", x), ("w", w)):
        if tensor.dtype not in DTYPES and not (x.is_cpu and tensor.dtype == torch.float64):
            allowed = "float32, float16 or bfloat16 (on a CPU also float64)"
            raise ValueError(f"{name} must be of {allowed}, not {tensor.dtype}")


def by_kernels(*tensors):
    """Whether Triton runs these: on a GPU, or in its interpreter, which is asked for no float64."""
    in_interpreter = os.environ.get("TRITON_INTERPRET") == "1" and all(t.dtype in DTYPES for t in tensors)
    return tensors[0].is_cuda or in_interpreter


@torch.library.custom_op("clifford::sgp", mutates_args=())
def sgp_forward(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, normalized: bool) -> torch.Tensor:
    """The product, contiguous."""
    if not x.numel():
        return torch.empty_like(x, memory_format=torch.contiguous_format)
    if not by_kernels(x, w):
        return reference.sgp(*at_least_float32(x, y, w), normalized).to(x.dtype)
    from .sgp import forward  # here, as not every machine with a CPU has Triton

    with torch.cuda.device_of(x):
        return forward(x.contiguous(), y.contiguous(), w.mT.contiguous(), normalized)


@sgp_forward.register_fake
def _(x, y, w, normalized):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("clifford::sgp_backward", mutates_args=())
def sgp_backward(
    dout: torch.Tensor, x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, normalized: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(dx, dy, dw): dx and dy contiguous, dw the transpose of a contiguous (P, N)."""
    if not x.numel():
        dx, dy, dw = (torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (x, y, w.mT))
    elif by_kernels(x, w):
        from .sgp import backward

        with torch.cuda.device_of(x):
            dx, dy, dw = backward(*(t.contiguous() for t in (dout, x, y, w.mT)), normalized)
    else:
        dx, dy, dw = reference.sgp_backward(*at_least_float32(dout, x, y, w), normalized)
        dx, dy, dw = dx.to(x.dtype), dy.to(x.dtype), dw.mT.to(w.dtype).contiguous()
    return dx, dy, dw.mT


@sgp_backward.register_fake
def _(dout, x, y, w, normalized):
    dx, dy, dw = (torch.empty_like(t, memory_format=torch.contiguous_format) for t in (x, y, w.mT))
    return dx, dy, dw.mT


def first_only(name):
    """For `register_autograd` of a backward pass: second derivatives are refused. `name`: sgp or fcgp."""

    def refuse(ctx, *gradients):
        raise RuntimeError(f"clifford.{name} has first derivatives only: for second ones use clifford.reference.{name}")

    return refuse


sgp_backward.register_autograd(first_only("sgp"))


def at_least_float32(*tensors):
    return tuple(t if t.dtype == torch.float64 else t.float() for t in tensors)


def _keep(ctx, inputs, output):
    *tensors, ctx.normalized = inputs
    ctx.save_for_backward(*tensors)


def _gradients(ctx, dout):
    return *torch.ops.clifford.sgp_backward(dout, *ctx.saved_tensors, ctx.normalized), None


sgp_forward.register_autograd(_gradients, setup_context=_keep)
