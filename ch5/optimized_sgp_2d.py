"""Weighted geometric product in 2D, every product of two blades an operation of its own: 16 of 64 remain, 56 u move.

What the table of `baseline_sgp_2d.py` has of zeros is left out: 16 products of a blade of x and a blade of y stand in
the code, with their signs, added up for each path and blade of the answer (14 of these), times the path's weight, and
added up once more. A blade is u / 4, and every operation a kernel that reads and writes all of its blades:

    16 products           read 2, write 1                                           48 blades
    their sums            2 that read 2; and 14 that add the first one to a 0       34
    weighted              14 that read 1, write 1                                   28
    sums of paths         10 that read 2; and 4 that add the first one to a 0       38
                                                                                   148 blades = 37 u
    gates, normalization, blades into one tensor                                                19 u

More than 90 launches, and more bytes than what they replace (36 u). But no product or sum needs more than three
blades, 24 MiB at the default size: most of what one writes, the next may still find in L2.

Predict before you measure: a quarter of the multiplications, 1.6x the bytes, 2.7x the launches. Faster or slower
than the einsum? And at 8192 x 1024, where a blade is 32 MiB?
"""

import torch
from clifford import reference as formulas
from compiled import compiled
from inlined import inlined
from multivectors import drawn

SIZES = {
    "check": {"batch": 3, "features": 127}, "check/one": {"batch": 1, "features": 1},
    "check/narrow": {"batch": 131, "features": 5}, "check/wide": {"batch": 1, "features": 1031},
    "check/plain": {"batch": 5, "features": 129, "normalized": False},
    "check/fp16": {"batch": 7, "features": 65, "dtype": "float16"},
    "check/bf16": {"batch": 3, "features": 257, "dtype": "bfloat16"},
    "default": {}, "plain/4096x512": {"normalized": False},
    "types/4096x512/fp16": {"dtype": "float16"}, "types/4096x512/bf16": {"dtype": "bfloat16"},
    "sweep/1024x128": {"batch": 1024, "features": 128}, "sweep/1024x256": {"batch": 1024, "features": 256},
    "sweep/1024x512": {"batch": 1024, "features": 512}, "sweep/1024x1024": {"batch": 1024, "features": 1024},
    "sweep/2048x128": {"batch": 2048, "features": 128}, "sweep/2048x256": {"batch": 2048, "features": 256},
    "sweep/2048x512": {"batch": 2048, "features": 512}, "sweep/2048x1024": {"batch": 2048, "features": 1024},
    "sweep/4096x128": {"batch": 4096, "features": 128}, "sweep/4096x256": {"batch": 4096, "features": 256},
    "sweep/4096x512": {"batch": 4096, "features": 512}, "sweep/4096x1024": {"batch": 4096, "features": 1024},
    "sweep/8192x128": {"batch": 8192, "features": 128}, "sweep/8192x256": {"batch": 8192, "features": 256},
    "sweep/8192x512": {"batch": 8192, "features": 512}, "sweep/8192x1024": {"batch": 8192, "features": 1024},
}  # fmt: skip
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 32 MiB
    x, y, w = drawn(2, batch, features, dtype, device)
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
