"""Weighted geometric product in 2D in one kernel: gate, products and normalization of whole rows in registers, 3 u.

A program reads rows of x and of y, all blades and features of them, and keeps them until the answer is written:

    in memory           read x, read y, write the answer                         3 u, the least there is
    in registers        x, y and the answer of 512 features: 3 * 4 * 512 * 4     24 KiB of an SM's 256
                        10 weights for each of them, read once for all rows      20 KiB
    in shared memory    the next row of x and y, on its way meanwhile            16 KiB, and this row

So a row's sums of squares are there before it leaves, and the normalization needs no second pass. The gates are one
factor a feature, phi(x[0]) * phi(y[0]), which multiplies the answer instead of 8 blades. All 16 products are
multiply-adds of the program's own numbers: they cost no bytes, and some 70 FLOP where 48 bytes move. A row wider than
1024 features is shared by several programs, and a first kernel finds its sums: 2 u more. As an operator of PyTorch,
with gradients, this kernel is `clifford.ops.sgp`.

Predict before you measure: 3 u are 96 MiB here, little for a GPU with 132 SMs. Does `yardstick_add`, which moves as
many bytes, reach the measured limit? How near to its time does this come? What does torch.compile leave?
"""

import torch
from clifford import reference as formulas
from clifford.sgp import forward
from compiled import compiled
from inlined import inlined
from multivectors import drawn

VERSUS = ""
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
    w = w.mT.contiguous().mT  # path by path in memory, as a layer keeps it
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
    return forward(x.contiguous(), y.contiguous(), w.mT.contiguous(), normalized)  # one kernel
