"""Fully connected geometric product: float32 out of three TF32 products, 3 times the FLOPs at 7 times the rate.

Problem: float32 products run on the CUDA cores: 67 TFLOP/s by an H200's datasheet. Tensor cores do 495 TFLOP/s in TF32,
but TF32 keeps only 10 bits of a float32's fraction.
Idea: split each operand into two TF32 numbers, the rounded operand and the rest. Of their four products, leave out the
smallest:

    (a + a') (b + b') = a b + a b' + a' b + a' b'     a' and b' up to 2^-11 of a and b, so a' b' up to 2^-22

A float32 product or sum is itself rounded at 2^-24 of its size, so the answer is judged as float32, like the
baseline's. Tensor cores cut off bits that float32 rounds. In a long sum this adds up, so the largest product is made of
sums of 1024 terms.
Cost: by an H200's datasheet

                                           3D                       2D
    CUDA cores      at 67 TFLOP/s          94 GFLOP      1.4 ms     30 GFLOP    0.45 ms
    tensor cores    at 495 TFLOP/s         283 GFLOP    0.57 ms     90 GFLOP    0.18 ms

Each half of z is written once more and read twice: the bytes grow with the rate. 16-bit tensors have nothing to split.
Predict: if only the products took time, it would be 2.5 times as fast as `optimized_fcgp_by_grade.py`. Is it more or
less?
"""

import fcgp_common
import torch
from clifford import reference as formulas
from clifford.fcgp import float32_in

VERSUS = "by_grade"


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**fcgp_common.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def left_operand(x, y, algebra, grade, paths):
    """z [blades of the grade, batch, paths to it * features]: for each of them its sum of products."""
    blades = [k for k, of_grade in enumerate(algebra.grades) if of_grade == grade]
    return torch.stack([
        torch.cat([sum(sign * x[i] * y[j] for i, j, *to, sign, p in algebra.terms if (*to, p) == (k, path))
                   for path in paths], -1)
        for k in blades
    ])  # fmt: skip


def split_tf32(t):
    """t rounded to the nearest number with 10 bits of fraction, and the rest."""
    high = ((t.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
    return high, t - high


def multiply(a, b):
    if a.dtype != torch.float32:
        return a @ b
    (a, a_low), (b, b_low) = split_tf32(a), split_tf32(b)
    with float32_in("tf32", a.dtype):  # cuBLAS may use tensor cores
        parts = zip(a.split(1024, 1), b.split(1024), strict=True)
        return a @ b_low + a_low @ b + sum(left @ right for left, right in parts)


def run(x, y, w_weight, normalized):
    algebra, (_, batch, features) = formulas.algebra_of(x), x.shape
    x, y = formulas.gate(x).unbind(), formulas.gate(y).unbind()
    out = []
    for grade in range(len(algebra.sizes)):
        paths = [path for path, (_, _, to) in enumerate(algebra.paths) if to == grade]
        z = left_operand(x, y, algebra, grade, paths)
        product = multiply(z.flatten(0, 1), w_weight[paths].flatten(0, 1))
        out.append(product.view(-1, batch, features))
    out = torch.cat(out)
    return formulas.normalize(out) if normalized else out
