"""Fully connected geometric product: one larger matrix product for each grade, 4 in 3D instead of 44.

Problem: `baseline_fcgp.py` adds up the results of 44 matrix products in memory.
Idea: the same K_c paths lead to all |c| blades of an output grade c. Let z be the left operands of the products, with
the blades of a grade one below another and the paths side by side. Then one larger product does what |c| K_c did:

    out_c = z_c @ W_c     [|c| B, K_c N] @ [K_c N, N]     3D: |c| = 1, 3, 3, 1     K_c = 4, 6, 6, 4
                                                          2D: |c| = 1, 2, 1        K_c = 3, 4, 3

The FLOPs are the same; the sums over paths now stay in the registers of cuBLAS.
Cost: z is written, by blade and path, copied side by side, and read by a product: with u the bytes of x (64 MiB of
float32, in 2D 32 MiB), 44 of its parts are 5.5 u (2D: 14, 3.5 u). Each of the operations that form it is a kernel.
By its datasheet an H200 needs 1.4 ms for 94 GFLOP in float32 on the CUDA cores (2D: 0.45 ms for 30 GFLOP). The limit
beside the time is that of TF32 (see fcgp_common.py), of which float32 can reach 14 %.
Predict: the products are 44 of the baseline's 273 kernels. Which others are left out here, and which are not?
"""

import fcgp_common
import torch
from clifford import reference as formulas


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


def run(x, y, w_weight, normalized):
    algebra, (_, batch, features) = formulas.algebra_of(x), x.shape
    x, y = formulas.gate(x).unbind(), formulas.gate(y).unbind()
    out = []
    for grade in range(len(algebra.sizes)):
        paths = [path for path, (_, _, to) in enumerate(algebra.paths) if to == grade]
        z = left_operand(x, y, algebra, grade, paths)
        product = z.flatten(0, 1) @ w_weight[paths].flatten(0, 1)
        out.append(product.view(-1, batch, features))
    out = torch.cat(out)
    return formulas.normalize(out) if normalized else out
