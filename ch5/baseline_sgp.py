"""Weighted geometric product as one einsum over a table of signs: 7 of 8 multiplications are by 0 in 3D, 49 u move.

Problem: x and y are multivectors, (D blades, batch, features), of u bytes each; D is 8 in 3D and 4 in 2D. Both are
gated first: x is multiplied by phi(x[0]), y by phi(y[0]). Then

    out[k, b, n] = sum over i, j, p of  w[n, p] * table[i, j, k, p] * x[i, b, n] * y[j, b, n]

and each grade is divided by the root of its squares, summed over its blades and averaged over a row. The table says
which blade e_i e_j is, with which sign, and to which path p (left grade, right grade -> grade) it belongs. For each
pair i, j it has one entry that is not 0: 64 of 512 triples (i, j, k) in 3D, 16 of 64 in 2D.
Cost: einsum contracts two operands at a time, from left to right (with the package opt_einsum, if it is installed, in
another order of about as many bytes). First weights and table become D^3 numbers for each feature. Then
                                                                                                        3D       2D
    two gates            phi of a blade is 4 passes of u / D, its product with all blades one of u     6.3 u    8.5 u
    ... times x          a matrix D^2 x D a feature: reads u, writes D u, as [n, j, k, b]                9 u      5 u
    transposed           to [b, n, k, j], for batched matrix products                                   16 u      8 u
    ... times y          a matrix D x D times a vector, for each row and feature                        10 u      6 u
    normalization        squares, their sums, quotients, and all grades into one tensor                  8 u    8.5 u
                                                                                                        49 u     36 u

At the default size u is 64 MiB (2D: 32 MiB). The least is 3 u: read x and y, write the answer. This is the shortest
form, not the one to beat: that is torch.compile of the products written out, the column "vs library".
Predict: at an H200's datasheet rate of 4.8 TB/s, 49 u take 0.69 ms. How many times as long does this version take?
"""

import published
import torch
from clifford import reference as formulas
from compiled import compiled
from compiled_recompute import inlined
from multivectors import drawn

SIZES = {
    "check": {"batch": 2, "features": 67},
    "check/2d/plain": {"dimensions": 2, "batch": 3, "features": 33, "normalized": False},
    "check/2d/one": {"dimensions": 2, "batch": 1, "features": 1},
    "check/fp16": {"batch": 1, "features": 65, "dtype": "float16"},
    "check/tuned/plain": {"batch": 5, "features": 129, "normalized": False},
    "check/tuned/narrow": {"batch": 67, "features": 5}, "check/tuned/wide": {"batch": 1, "features": 1031},
    "check/tuned/2d/bf16": {"dimensions": 2, "batch": 3, "features": 257, "dtype": "bfloat16"},
    "check/tuned/2d/many": {"dimensions": 2, "batch": 13001, "features": 5},  # several tiles a program, up to 203 SMs
    "count": {"batch": 512, "features": 64},
    "default": {}, "2d/4096x512": {"dimensions": 2},
}  # fmt: skip
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


def library_source(x, y, w, normalized):  # what the layer's published kernels are compared with
    return compiled(published.sgp, x, normalized)(x, y, w, normalized)


def yardstick_add(x, y, w, normalized):  # reads two tensors and writes one, 3 u
    return torch.add(x, y)


def cost(x, y, w, normalized):
    return {"dram_bytes": 3 * x.nbytes + w.nbytes}  # read x, y and w, write the answer


def setup(x, y, w, normalized):
    dimensions = formulas.algebra_of(x).dimensions
    return {"table": formulas.cayley(dimensions).to(w)}  # [i, j, k, path]: what e_i e_j has of e_k by this path


def run(x, y, w, normalized, table):
    gate, normalize = formulas.gate, formulas.normalize
    product = torch.einsum("np,ijkp,ibn,jbn->kbn", w, table, gate(x), gate(y))
    return normalize(product) if normalized else product
