"""RMS norm of every row in two passes, the second out of a cache: what the first reads is to stay there until then.

y = x / sqrt(mean(x^2) + eps) * weight, along a row. As in `baseline_rms_norm.py`, a row is read twice. But a program
is through with it in a few loads of a thread, and these say what is to leave the caches first:

    first pass     evict_last     will be read again, and soon
    second pass    evict_first    was read for the last time
    16,384 columns, 2 programs on each of 132 SMs    2 * 132 * 64 KiB = 16.5 MiB between the passes: an L2 has that

Nothing of a row is kept in registers, so every SM is full of threads, whose loads are under way while others wait for
their sum.

Predict before you measure: every element now comes once from memory, and once more from L2. Is that less of a limit
than the waiting of `optimized_rms_norm.py`, whose rows fill the registers? At which widths?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

VERSUS = ""
SIZES = {
    "check": {"rows": 3, "columns": 127}, "check/one": {"rows": 1, "columns": 1},
    "check/narrow": {"rows": 131, "columns": 5}, "check/wide": {"rows": 7, "columns": 10_001},
    "check/fp16": {"rows": 129, "columns": 129, "dtype": "float16"},
    "check/bf16": {"rows": 5, "columns": 1025, "dtype": "bfloat16"},
    "default": {"rows": 4096, "columns": 8192},  # 128 MiB of float32: larger than any L2
    "small/4096x1024": {"columns": 1024}, "small/4096x1024/fp16": {"columns": 1024, "dtype": "float16"},
    "medium/4096x4096": {"columns": 4096}, "medium/4096x4096/fp16": {"columns": 4096, "dtype": "float16"},
    "large/4096x8192": {}, "large/4096x8192/fp16": {"dtype": "float16"}, "large/4096x8192/bf16": {"dtype": "bfloat16"},
    "large/4096x16384": {"columns": 16_384}, "large/4096x16384/fp16": {"columns": 16_384, "dtype": "float16"},
    "batch/16384x768": {"rows": 16_384, "columns": 768},  # 32 sequences of 512 tokens, a width that is no power of two
    "batch/16384x768/fp16": {"rows": 16_384, "columns": 768, "dtype": "float16"},
}  # fmt: skip
EPS = 1e-5
BLOCK = 4096  # elements at a time
REGISTERS = 32  # a thread's at most: 2048 threads share an SM


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, w_weight = torch.randn(rows, columns, device=device), torch.randn(columns, device=device)
    return {"x": x.to(getattr(torch, dtype)), "w_weight": w_weight.to(getattr(torch, dtype))}


def reference(x, w_weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * w_weight


def library(x, w_weight):
    return torch.nn.functional.rms_norm(x, x.shape[1:], w_weight, EPS)


def library_compiled(x, w_weight):
    return compiled(library, x)(x, w_weight)


def cost(x, w_weight):
    return {"dram_bytes": 2 * x.nbytes + w_weight.nbytes}  # read x and weight, write y


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, columns: tl.constexpr, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * columns  # 64 bits: a tensor may have more than 2^31 elements
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + lane < columns
        x = tl.load(x_ptr + at + start + lane, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, 0) / columns + eps)
    for start in range(0, columns, BLOCK):
        inside = start + lane < columns
        x = tl.load(x_ptr + at + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + start + lane, mask=inside, eviction_policy="evict_last").to(tl.float32)
        tl.store(y_ptr + at + start + lane, x * rstd * weight, mask=inside)


def run(x, w_weight):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    warps = BLOCK * x.element_size() // 512  # a load of 16 bytes a lane
    if y.numel():
        rms_norm_kernel[(rows,)](x, w_weight, y, columns, EPS, BLOCK=BLOCK, num_warps=warps, maxnreg=REGISTERS)
    return y
