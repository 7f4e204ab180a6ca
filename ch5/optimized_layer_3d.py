"""Clifford layer, 3D, of two operators: a batched product, then gate, product and norm in one pass; 5.25 tensors.

    y = x @ L[grade] + bias     torch.bmm, a matrix for each blade: that of its grade; the bias is added in place
    out = product of x and y    one kernel: a batch row of all blades and features, from read to normalized

u is what x has, 8 blades (64 MiB of float32 at B = 4096, N = 512):

    y      read x, write y, add the bias to 1 blade of 8     2.25 u     17.2 GFLOP
    out    read x and y, write out                        3 u        in all 5.25 u instead of 90

By its datasheet an H200 needs 0.07 ms for the bytes, and still 0.26 ms for the FLOPs in float32: the layer is now as
long as its matrix product. In 16 bits (989 TFLOP/s, half the bytes) the two change places once more. The limit beside
the time counts float32 at TF32's rate, see connected.py: of that the CUDA cores reach 14 %.

Size "fcgp": the product is fully connected, a matrix product for each grade, 94 GFLOP, 1.4 ms.

Predict before you measure: how much faster than `baseline_layer_3d.py`? Faster or slower than torch.compile? At which
size of the sweep most, at which least? (`clifford.CliffordLayer` is this as a module.)
"""

import connected
import torch
from clifford import fcgp, sgp
from clifford import reference as formulas
from clifford.reference import algebra_of
from compiled import compiled

SIZES = {
    "check": {"batch": 5, "features": 7}, "check/one": {"batch": 1, "features": 1},
    "check/row": {"batch": 1, "features": 67}, "check/plain": {"batch": 67, "features": 5, "normalized": False},
    "check/fp16": {"batch": 3, "features": 33, "dtype": "float16"},
    "check/fcgp": {"batch": 3, "features": 5, "product": "fcgp"},
    "check/fcgp/plain": {"batch": 1, "features": 9, "product": "fcgp", "normalized": False},
    "default": {}, "fcgp/4096x512": {"product": "fcgp"}, "plain/4096x512": {"normalized": False},
    "types/4096x512/fp16": {"dtype": "float16"}, "types/4096x512/bf16": {"dtype": "bfloat16"},
    "sweep/1024x128": {"batch": 1024, "features": 128}, "sweep/1024x512": {"batch": 1024, "features": 512},
    "sweep/1024x1024": {"batch": 1024, "features": 1024}, "sweep/4096x128": {"batch": 4096, "features": 128},
    "sweep/4096x512": {"batch": 4096, "features": 512}, "sweep/4096x1024": {"batch": 4096, "features": 1024},
}  # fmt: skip
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(batch=4096, features=512, dtype="float32", normalized=True, product="sgp", device="cuda"):
    found = connected.layer_drawn(3, batch, features, dtype, product, device)
    if product == "sgp":  # path by path in memory, as a layer keeps them
        found["w_weight"] = found["w_weight"].mT.contiguous().mT
    return {**found, "normalized": normalized}


def reference(x, w_linear, w_bias, w_weight, normalized):
    return formulas.layer(x, w_linear, w_bias, w_weight, normalized)


def library(x, w_linear, w_bias, w_weight, normalized):
    layer = compiled(formulas.layer, x, w_weight.shape, normalized)
    return layer(x, w_linear, w_bias, w_weight, normalized)


def cost(x, w_linear, w_bias, w_weight, normalized):
    return connected.layer_cost(x, w_linear, w_bias, w_weight)


def run(x, w_linear, w_bias, w_weight, normalized):
    grades = zip(w_linear, algebra_of(x).sizes, strict=True)
    y = torch.bmm(x, torch.cat([matrix.expand(size, -1, -1) for matrix, size in grades]))
    y[0] += w_bias
    if w_weight.dim() == 2:
        return sgp.forward(x, y, w_weight.mT.contiguous(), normalized)
    return fcgp.forward(x, y, w_weight, normalized)[0]
