"""Clifford layer of two operators: a batched product, then gate, product and norm in one pass; 5 tensors in 3D.

Problem: in `baseline_layer.py` the product of x and y is some 270 kernels that move 86 of 91 u.
Idea: two calls do the work.

    y = x @ L[grade] + bias     torch.bmm, a matrix for each blade: that of its grade; the bias on the scalar blade
    out = product of x and y    the kernel of `optimized_sgp_fused.py`: a row of all blades, from read to normalized

`torch.bmm` needs the matrices of all blades side by side. So `torch.stack` copies them: 4 are read and 8 written (2D: 3
and 4). These 0.2 u are not in the table.
Cost: u is the bytes of x, 8 blades (64 MiB of float32 at B = 4096, N = 512) or 4:

                                                            3D         2D
    y      read x, write y; one blade with its bias         2.2 u      2.5 u     17.2 GFLOP (2D: 8.6)
    out    read x and y, write out                          3 u        3 u
    in all                                                  5.2 u      5.5 u     instead of 91 (60)

By its datasheet an H200 needs 0.07 ms for the bytes, and still 0.26 ms for the FLOPs in float32 (2D: 0.04 ms and 0.13
ms): most of the layer's time is now its matrix product. In 16 bits (989 TFLOP/s, half the bytes) the bytes take longer
again. The limit beside the time counts float32 at TF32's rate (see fcgp_common.py); CUDA cores can reach 14 % of it.
At size "fcgp" the product is fully connected, as in `optimized_fcgp_by_grade.py`.
Predict: how many times as fast as `baseline_layer.py` is this version at the default size? And is it faster than
torch.compile, whose matrix product is the same?
"""

import fcgp_common
import optimized_fcgp_by_grade
import optimized_sgp_fused
import torch
from clifford.reference import algebra_of

TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, product="sgp", device="cuda"):
    found = fcgp_common.layer_drawn(dimensions, batch, features, dtype, product, device)
    if product == "sgp":  # path by path in memory, as a layer keeps them
        found["w_weight"] = found["w_weight"].mT.contiguous().mT
    return {**found, "normalized": normalized}


def run(x, w_linear, w_bias, w_weight, normalized):
    matrices = w_linear.unbind()
    y = torch.bmm(x, torch.stack([matrices[grade] for grade in algebra_of(x).grades]))
    y[0] += w_bias
    product = optimized_sgp_fused.run if w_weight.dim() == 2 else optimized_fcgp_by_grade.run
    return product(x, y, w_weight, normalized)
