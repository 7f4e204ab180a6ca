"""What the pairs of the fully connected product share: their inputs, what they cost, and gradients by autograd."""

import torch
from clifford.algebra import algebra
from clifford.reference import algebra_of

# Float32 is counted as TF32, whose rate (an H200's datasheet: 495 TFLOP/s) limits whatever is made of float32: three
# products in TF32, which give nearly its accuracy, can reach a third of it, and the CUDA cores (67 TFLOP/s) 14 %.
FLOPS = {torch.float32: "tf32_flops", torch.float16: "fp16_flops", torch.bfloat16: "bf16_flops"}


def drawn(dimensions, batch, features, dtype, device, names="xy"):
    """Multivectors (D, B, N) by name and `w_weight` (P, N, N), of a size that keeps the product's about 1."""
    kind, paths = getattr(torch, dtype), len(algebra(dimensions).paths)
    shape, spread = (2**dimensions, batch, features), (features * (dimensions + 1)) ** -0.5
    found = {name: torch.randn(shape, device=device).to(kind) for name in names}
    weight = torch.randn(paths, features, features, device=device) * spread
    return {**found, "w_weight": weight.to(kind)}


def products_cost(x, w_weight):
    """Forward: 14 (2D) or 44 (3D) products of (B, N) and (N, N); read x, y and w_weight, write out."""
    count = sum(len(blades) for blades in algebra_of(x).sums(2, 0, 1))
    return {"dram_bytes": 3 * x.nbytes + w_weight.nbytes, FLOPS[x.dtype]: 2 * count * x[0].numel() * x.shape[2]}


def precision(x, w_weight):
    """How the library is to multiply float32: by three TF32 products where these save more than the split's bytes cost.

    As measured, in 2D and 3D, for batches of 1024 to 8192 and 128 to 1024 features.
    """
    (_, _), (_, flops) = products_cost(x, w_weight).items()
    return "tf32x3" if flops > 2e10 else "ieee"


def gradients_cost(x, w_weight):
    """Forward and backward, three products for one: x, y and w_weight read twice, out, dx, dy and dw written."""
    (_, moved), (key, flops) = products_cost(x, w_weight).items()
    return {"dram_bytes": moved + 5 * x.nbytes + 2 * w_weight.nbytes, key: 3 * flops}


def gradients(product, gradient, *tensors):
    """The gradients of the tensors, from that of `product(*tensors)`, by autograd."""
    leaves = [t.detach().requires_grad_() for t in tensors]
    with torch.enable_grad():
        return torch.autograd.grad(product(*leaves), leaves, gradient)


def layer_drawn(dimensions, batch, features, dtype, product, device):
    """x (D, B, N), `w_linear` (grades, N, N), `w_bias` (N), and `w_weight`: (N, P) for "sgp", (P, N, N) for "fcgp"."""
    kind, found, grades = getattr(torch, dtype), drawn(dimensions, batch, features, dtype, device, "x"), dimensions + 1
    if product == "sgp":
        paths = len(found.pop("w_weight"))
        found["w_weight"] = (torch.randn(features, paths, device=device) * grades**-0.5).to(kind)
    linear = torch.randn(grades, features, features, device=device) * (features * grades) ** -0.5
    bias = 0.1 * torch.randn(features, device=device)  # far below 0, phi in float32 has few digits of a tiny factor
    return {"x": found["x"], "w_linear": linear.to(kind), "w_bias": bias.to(kind), "w_weight": found["w_weight"]}


def layer_cost(x, w_linear, w_bias, w_weight):
    """Read x and the weights, write out; a product of (B, N) and (N, N) for each blade of y, and those of "fcgp"."""
    flops = 2 * x.numel() * x.shape[2]
    if w_weight.dim() == 3:
        flops += products_cost(x, w_weight)[FLOPS[x.dtype]]
    moved = 2 * x.nbytes + w_linear.nbytes + w_bias.nbytes + w_weight.nbytes
    return {"dram_bytes": moved, FLOPS[x.dtype]: flops}
