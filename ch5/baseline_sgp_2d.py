"""Weighted geometric product in 2D as one einsum over a table of signs: 3 of 4 multiplications are by 0, and 36 u move.

x and y are multivectors, (4 blades, batch, features), u bytes each. Both are gated: times phi(x[0]), phi(y[0]). Then

    out[k, b, n] = sum over i, j, p of  w[n, p] * table[i, j, k, p] * x[i, b, n] * y[j, b, n]

and each grade is divided by its root mean square over a row. The table says which blade e_i e_j is, with which sign,
and by which path (grade, grade -> grade) a weight belongs to it: 16 of its 4 * 4 * 4 signs are not 0. einsum contracts
two operands at a time, from left to right; of each feature, weights and table become 64 numbers; then

    two gates            phi of a blade is 4 passes of u / 4, its product with all blades one of u     8.5 u
    ... times x          a matrix 16 x 4 a feature: reads u, writes 4 u, which are [n, j, k, b]          5 u
    turned               to [b, n, k, j], for matrix products side by side                               8 u
    ... times y          a matrix 4 x 4 times a vector, for each row and feature                         6 u
    normalization        squares, their sums, quotients, and all grades into one tensor                8.5 u

In memory, both 4 u at once. Reading x and y and writing the answer would be 3 u.

Predict before you measure: how long do 36 u of 32 MiB take at your GPU's bandwidth? Which step takes longer still?
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


def setup(x, y, w, normalized):
    return {"table": formulas.cayley(2).to(w)}  # [i, j, k, path]: what e_i e_j has of e_k by this path


def run(x, y, w, normalized, table):
    gate, normalize = formulas.gate, formulas.normalize
    product = torch.einsum("np,ijkp,ibn,jbn->kbn", w, table, gate(x), gate(y))
    return normalize(product) if normalized else product
