"""Multiply two matrices and apply an activation in two operations: the product is written, read and written again.

Problem: y = activation(a @ b), in 16 bits, by the vendor's library and an element-wise kernel of torch. At 4096^3:

    product       137 GFLOP, reads a and b, writes 32 MiB    101 MB
    activation    reads 32 MiB, writes 32 MiB                 67 MB more

The arithmetic intensity falls from 1365 to 819 FLOP a byte. Both are far above the ridge point of an H200 (206 by its
datasheet).
Cost: the tensor cores are idle while the activation runs. The product is rounded to 16 bits, and the result again; one
kernel rounds the result only.
Predict: with 989 TFLOP/s and 4.8 TB/s (H200, datasheet), by how many percent is it slower than the product alone?
"""

from compiled import compiled
from matrices import operand, product_cost
from torch.nn import functional

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 67, "n": 129, "k": 65}, "check/one": {"m": 1, "n": 1, "k": 1, "activation": "relu"},
    "check/row": {"m": 1, "n": 257, "k": 131, "activation": "gelu"},
    "check/tiles": {"m": 389, "n": 269, "k": 7, "activation": "silu"},
    "check/relu": {"m": 67, "n": 129, "k": 131, "activation": "relu", "transposed": "a"},
    "check/by16": {"m": 136, "n": 272, "k": 80, "activation": "silu"},
    "check/tuned/silu": {"m": 136, "n": 264, "k": 72, "activation": "silu", "transposed": "ab"},
    "check/tuned/gelu": {"m": 136, "n": 264, "k": 72, "activation": "gelu", "transposed": "b"},
    "check/tuned/no k": {"m": 3, "n": 5, "k": 0}, "check/tuned/no row": {"m": 0, "n": 5, "k": 3, "activation": "gelu"},
    "check/tuned/192": {"m": 190, "n": 4225, "k": 9}, "check/tuned/192/by8": {"m": 191, "n": 4232, "k": 8},  # its tiles
    "check/tuned/steps": {"m": 70, "n": 129, "k": 1100},  # more steps than stages
    "count": {"m": 512, "n": 512, "k": 256},
    "default": {}, "large/8192/leaky_relu/fp16": {"m": 8192, "n": 8192, "k": 8192},
    "large/4096/gelu/fp16": {"activation": "gelu"},
}  # fmt: skip


def inputs(m=4096, n=4096, k=4096, activation="leaky_relu", dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device), "activation": activation}


def library(a, b, activation):
    return getattr(functional, activation)(a @ b)


def yardstick_product(a, b, activation):
    return a @ b


def library_compiled(a, b, activation):
    return compiled(library, a, b.shape, b.stride(), activation)(a, b, activation)


def library_autotuned(a, b, activation):
    mode = "max-autotune-no-cudagraphs"
    return compiled(library, a, b.shape, b.stride(), activation, mode=mode)(a, b, activation)


def cost(a, b, activation):
    return product_cost(a, b)


def run(a, b, activation):
    return getattr(functional, activation)(a @ b)  # two kernels
