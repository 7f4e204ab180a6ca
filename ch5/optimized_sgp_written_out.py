"""Weighted geometric product, each product of two blades an operation: 64 instead of 512 in 3D, and 86 u move.

Problem: most of the table of `baseline_sgp.py` is 0, and every multiplication by 0 is done all the same.
Idea: write out the D^2 products of a blade of x and a blade of y that are not 0, with their signs. Add them up for each
path and blade of the answer (44 such sums in 3D, 14 in 2D), multiply each sum by the weight of its path, and add these.
Cost: every operation is a kernel that reads and writes whole blades (a blade has u / D bytes):

    blades that move                                               3D                       2D
    products          read 2, write 1                              64         192           16          48
    their sums        read 2; or add the first one to a 0          20 and 44  148            2 and 14   34
    weighted          read 1, write 1                              44          88           14          28
    sums of paths     read 2; or add the first one to a 0          36 and 8   124           10 and 4    38
                                                                              552 = 69 u               148 = 37 u
    gates, normalization, blades into one tensor                                    17 u                     19 u

That is 86 u (2D: 56 u) instead of 49 u (36 u). But a product or sum needs only three blades, 24 MiB at the default size
and 1.5 MiB at 1024 x 128: the next operation may find in L2 what the last one wrote.
Predict: in 3D this version does an eighth of the multiplications, moves 1.75x the bytes and launches 6.7x the kernels.
Is it faster or slower than the einsum at the default size? And at size sweep/3d/1024x128?
"""

from clifford import reference as formulas
from multivectors import drawn

TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    return {"x": x, "y": y, "w": w, "normalized": normalized}


def run(x, y, w, normalized):
    return formulas.sgp(x, y, w, normalized)
