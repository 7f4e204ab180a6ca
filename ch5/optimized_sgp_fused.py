"""Weighted geometric product in one kernel: gate, products and normalization of whole rows in registers, 3 u.

Problem: in `optimized_sgp.py` every operation reads and writes memory: 86 u in 3D.
Idea: a program reads whole rows of x and y, all blades and all features of them, and keeps them in registers until the
answer is written. The sums of squares of a row are ready before the row leaves, so the normalization needs no second
pass. Both gates are one factor for each feature, phi(x[0]) * phi(y[0]), applied to the answer.
Cost: one program has

                                                                                     3D        2D
    in memory           read x, read y, write the answer: the least there is          3 u       3 u
    in registers        x, y and the answer of 512 features: 3 * D * 512 * 4         48 KiB    24 KiB    of an SM's 256
                        20 or 10 weights for each of them, read once for all rows    40 KiB    20 KiB
    in shared memory    the next row of x and y, in flight meanwhile                 32 KiB    16 KiB    and this row

All D^2 products are multiply-adds of numbers in registers: some 250 FLOP for 96 bytes that move (2D: 70 for 48). A row
wider than 1024 features is shared by several programs, and a first kernel finds its sums: 2 u more. The same kernel is
the PyTorch operator `clifford.ops.sgp`, with gradients.
Predict: `yardstick_add` reads two tensors, writes one and computes next to nothing: the same 3 u, in the same rounds.
How many percent of the measured memory limit does this kernel reach? And how many times as long does torch.compile
take, which is given the lines of `optimized_sgp.py`?
"""

from clifford.sgp import forward
from multivectors import drawn

VERSUS = ""
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    w = w.mT.contiguous().mT  # path by path in memory, as a layer keeps it
    return {"x": x, "y": y, "w": w, "normalized": normalized}


def run(x, y, w, normalized):
    return forward(x.contiguous(), y.contiguous(), w.mT.contiguous(), normalized)  # one kernel
