"""Clifford layer by the library: a batched product, then a kernel that adds the bias as it reads y.

Problem: `optimized_layer.py` reads and writes the scalar blade once more for the bias, a launch and 2 u / D. Its
kernels are those of the lessons, for rows of up to some 1024 features.
Idea: two calls of `clifford`.

    the bias             `sgp.forward` adds it to y's scalar blade as it reads it
    any shape            several rows a program, the next row's loads beside this one's work, wide rows in parts
    fully connected      `fcgp.forward` forms z in one kernel and runs grades in batches

`clifford.CliffordLayer` is this layer as a module, with gradients, and with the bias as a step of its own.
Cost: read x, write y; read x and y, write out: 5 u. At size "fcgp" 94 GFLOP more, 1.4 ms (2D: 30, 0.45 ms).
Predict: what can it gain over `optimized_layer.py` at the default size, and at size "fcgp"?
"""

import fcgp_common
import torch
from clifford import fcgp, sgp
from clifford.reference import algebra_of

VERSUS = ""
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, product="sgp", device="cuda"):
    found = fcgp_common.layer_drawn(dimensions, batch, features, dtype, product, device)
    if product == "sgp":  # path by path in memory, as a layer keeps them
        found["w_weight"] = found["w_weight"].mT.contiguous().mT
    return {**found, "normalized": normalized}


def run(x, w_linear, w_bias, w_weight, normalized):
    x = x.contiguous()
    matrices = w_linear.unbind()
    y = torch.bmm(x, torch.stack([matrices[grade] for grade in algebra_of(x).grades]))
    if w_weight.dim() == 2:
        return sgp.forward(x, y, w_weight.mT.contiguous(), normalized, w_bias.contiguous())
    y[0] += w_bias
    return fcgp.forward(x, y, w_weight.contiguous(), normalized)[0]
