"""Apply scale, shift, SiLU, gate and residual as five operations: twelve matrices of 128 MiB move where three would do.

Problem: y = silu(scale * x + shift) * gate + x, as around a gated layer; scale and shift are vectors along a row. Each
operation is a kernel that reads matrices from memory and leaves one there for the next:

    scale * x        reads 1, writes 1
    ... + shift      reads 1, writes 1
    silu(...)        reads 1, writes 1
    ... * gate       reads 2, writes 1
    ... + x          reads 2, writes 1      12 matrices in all

Cost: 12 matrices and 5 launches, where the useful minimum is 3 matrices: x, gate, result. In 16 bits each of the four
intermediate results is rounded, too.

Predict: `optimized_fused_elementwise_fused.py` moves three matrices in one launch. How many times faster is it, if
every kernel moves its bytes at the same rate?
"""

import torch
from compiled import compiled

SIZES = {
    "check": {"rows": 17, "columns": 129}, "check/one": {"rows": 1, "columns": 1},
    "check/row": {"rows": 1, "columns": 1025}, "check/column": {"rows": 67, "columns": 1},
    "check/fp16": {"rows": 3, "columns": 1031, "dtype": "float16"},
    "check/bf16": {"rows": 3, "columns": 513, "dtype": "bfloat16"},
    "check/tuned/tail": {"rows": 33, "columns": 517}, "check/tuned/aligned": {"rows": 17, "columns": 1040},
    "check/tuned/column": {"rows": 16_401, "columns": 1},
    "check/tuned/by8": {"rows": 17, "columns": 1032, "dtype": "float16"},
    "check/tuned/by4": {"rows": 17, "columns": 1036},
    "check/tuned/by2": {"rows": 17, "columns": 1034, "dtype": "bfloat16"},
    "check/tuned/wide": {"rows": 11, "columns": 1651, "dtype": "float16"},
    "count": {"rows": 256, "columns": 512},
    "default": {"rows": 8192, "columns": 4096},  # 128 MiB of float32 a matrix: larger than any L2
    "small/512x512": {"rows": 512, "columns": 512},
}  # fmt: skip


def inputs(rows=8192, columns=4096, dtype="float32", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, gate = torch.randn(rows, columns, **like), torch.randn(rows, columns, **like)
    return {"x": x, "gate": gate, "w_scale": torch.randn(columns, **like), "w_shift": torch.randn(columns, **like)}


def reference(x, gate, w_scale, w_shift):
    return torch.nn.functional.silu(w_scale * x + w_shift) * gate + x


def library_compiled(x, gate, w_scale, w_shift):
    return compiled(reference, x)(x, gate, w_scale, w_shift)


def cost(x, gate, w_scale, w_shift):
    return {"dram_bytes": 3 * x.nbytes + 2 * w_scale.nbytes}  # read x, gate and two vectors, write y


def run(x, gate, w_scale, w_shift):
    return torch.nn.functional.silu(w_scale * x + w_shift) * gate + x
