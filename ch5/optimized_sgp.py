"""Weighted geometric product, every product of two blades an operation of its own: 64 of 512 remain in 3D, 86 u move.

What the table of `baseline_sgp.py` has of zeros is left out: D^2 products of a blade of x and a blade of y stand in the
code, with their signs, added up for each path and blade of the answer (44 of these in 3D, 14 in 2D), times the path's
weight, and added up once more. A blade is u / D, and every operation a kernel that reads and writes all of its blades:

    blades that move                                               3D                       2D
    products          read 2, write 1                              64         192           16          48
    their sums        read 2; or add the first one to a 0          20 and 44  148            2 and 14   34
    weighted          read 1, write 1                              44          88           14          28
    sums of paths     read 2; or add the first one to a 0          36 and 8   124           10 and 4    38
                                                                              552 = 69 u               148 = 37 u
    gates, normalization, blades into one tensor                                    17 u                     19 u

More than 200 launches (2D: 90), and more bytes than what they replace (49 u; 36 u). But no product or sum needs more
than three blades, 24 MiB at the default size: most of what one writes, the next may still find in L2.

Predict before you measure: an eighth of the multiplications, 1.7x the bytes, 6.7x the launches; in 2D a quarter, 1.6x,
2.7x. Faster or slower than the einsum? And at 8192 x 1024, where a blade is 32 MiB?
"""

import torch
from clifford import reference as formulas
from compiled import compiled
from inlined import inlined
from multivectors import drawn

TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    return {"x": x, "y": y, "w": w, "normalized": normalized}


def reference(x, y, w, normalized):
    return formulas.sgp(x, y, w, normalized)


def library(x, y, w, normalized):
    return compiled(formulas.sgp, x, normalized)(x, y, w, normalized)


def library_inlined(x, y, w, normalized):  # told to keep nothing that it can compute again
    return inlined(formulas.sgp, x, normalized)(x, y, w, normalized)


def yardstick_add(x, y, w, normalized):  # reads two tensors and writes one, 3 u
    return torch.add(x, y)


def cost(x, y, w, normalized):
    return {"dram_bytes": 3 * x.nbytes + w.nbytes}  # read x, y and w, write the answer


def run(x, y, w, normalized):
    return formulas.sgp(x, y, w, normalized)
