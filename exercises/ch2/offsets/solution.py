"""Decode a table of int8 codes: the number of the row has 64 bits before it is multiplied by the width.

`tl.program_id(0)` and `n_cols` have 32 bits each, and so has their product. From 2^31 = 2,147,483,648 elements on it
wraps around and becomes negative: the program loads and stores before the table. A table of 2 GiB of int8 has as many
elements, and fits into every GPU; its result in float32 takes 8 GiB. Which of the two factors is made wider does not
matter. What matters is that it comes before the product: a product that has wrapped around stays wrong in 64 bits.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n_rows": 60, "n_cols": 130}, "check/one": {"n_rows": 33, "n_cols": 1},
    "check/wide": {"n_rows": 3, "n_cols": 3001},
    "narrow/tall": {"n_rows": 700, "n_cols": 1001}, "narrow/wide": {"n_rows": 3, "n_cols": 240_001},  # above 2^19
    "count": {"n_rows": 8, "n_cols": 1024}, "default": {"n_rows": 16_384, "n_cols": 4096},
}  # fmt: skip


def inputs(n_rows, n_cols, device="cuda"):
    codes = torch.randint(-128, 128, (n_rows, n_cols), dtype=torch.int8, device=device)
    return {"codes": codes, "scales": torch.randn(n_rows, device=device)}


def reference(codes, scales):
    return codes * scales[:, None]


def cost(codes, scales):
    return {"dram_bytes": codes.nbytes + scales.nbytes + 4 * codes.numel()}  # read both, write 4 bytes for each code


@triton.jit
def decode_kernel(codes_ptr, scales_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scale = tl.load(scales_ptr + row)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        offsets = row * n_cols + cols
        codes = tl.load(codes_ptr + offsets, mask=cols < n_cols)
        tl.store(out_ptr + offsets, codes * scale, mask=cols < n_cols)


def run(codes, scales):
    n_rows, n_cols = codes.shape
    out = torch.empty(n_rows, n_cols, device=codes.device)
    decode_kernel[(n_rows,)](codes, scales, out, n_cols, BLOCK=1024)
    return out
