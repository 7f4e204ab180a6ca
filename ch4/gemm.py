"""The matrix product that `tune.py` searches: c = activation(a @ b), its tiles, stages, warps and variant as arguments.

The pairs of this chapter hold kernels of their own, with constants where this one has a configuration: a half is read
alone. A configuration is a dict with the keys of DEFAULT. Three variants of the same product:

    pointers      a program for each tile; the threads compute an address for every 16 bytes that they copy
    descriptors   the same with tensor descriptors: on capability 9.0 and up one instruction copies a whole block (TMA)
    persistent    descriptors, and as many programs as run at once: each walks over many tiles

    import gemm; c = gemm.matmul(a, b, gemm.load("best.json"), "leaky_relu")

Any m, n and k, 0 and odd ones too; descriptors want rows at multiples of 16 bytes (so n and k multiples of 8, not 0).
"""

import json

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

VARIANTS = ("pointers", "descriptors", "persistent")
ACTIVATIONS = ("none", "leaky_relu", "relu")
DEFAULT = {
    "BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64,  # 128 x 256 sums in float32: 128 registers of each of 256 threads
    "GROUP_M": 8, "STAGES": 3, "WARPS": 8, "VARIANT": "pointers",
}  # fmt: skip


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "leaky_relu":
        x = tl.maximum(x, 0.01 * x)  # NaN if x is: both are
    elif ACTIVATION == "relu":
        x = tl.where(x < 0, 0.0, x)  # and not tl.maximum, which drops NaN
    return x


@triton.jit
def tile_of(pid, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """(row, column) of a program's tile: GROUP_M tiles of rows before the next column, so that they share b in L2."""
    across, down = tl.cdiv(n, BLOCK_N), tl.cdiv(m, BLOCK_M)
    first = pid // (GROUP_M * across) * GROUP_M
    height = min(down - first, GROUP_M)
    within = pid % (GROUP_M * across)
    return first + within % height, within // height


@triton.jit
def store(c_ptr, total, i, j, m, n, c_row, ACTIVATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = (i * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    column = j * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    values = activate(total, ACTIVATION).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + row * c_row + column, values, mask=(row < m) & (column < n))


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_row, a_column, b_row, b_column, c_row, ACTIVATION: tl.constexpr,
    EVEN_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    i, j = tile_of(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP_M)
    row = ((i * BLOCK_M + tl.arange(0, BLOCK_M)) % m).to(tl.int64)[:, None]  # beyond the last: any that exists
    column = ((j * BLOCK_N + tl.arange(0, BLOCK_N)) % n).to(tl.int64)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a_at = a_ptr + row * a_row + inner[None, :] * a_column
    b_at = b_ptr + inner[:, None] * b_row + column * b_column
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        if EVEN_K:
            a, b = tl.load(a_at), tl.load(b_at)
        else:
            a = tl.load(a_at, mask=inner[None, :] < k - start, other=0.0)
            b = tl.load(b_at, mask=inner[:, None] < k - start, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BLOCK_K * a_column
        b_at += BLOCK_K * b_row
    store(c_ptr, total, i, j, m, n, c_row, ACTIVATION, BLOCK_M, BLOCK_N)


@triton.jit
def descriptor_kernel(
    a_descriptor, b_descriptor, c_ptr, m, n, k, c_row, ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    for pid in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        i, j = tile_of(pid, m, n, BLOCK_M, BLOCK_N, GROUP_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_descriptor.load([i * BLOCK_M, start])  # zeros beyond the edges
            b = b_descriptor.load([start, j * BLOCK_N])
            total = tl.dot(a, b, total)
        store(c_ptr, total, i, j, m, n, c_row, ACTIVATION, BLOCK_M, BLOCK_N)


def describable(x):
    """Can a descriptor be made of a matrix? Rows side by side, each at a multiple of 16 bytes."""
    aligned = x.data_ptr() % 16 == 0 and x.stride(0) * x.element_size() % 16 == 0
    return x.numel() > 0 and x.stride(1) == 1 and aligned


def launch(a, b, c, configuration, activation="none"):
    """Write activation(a @ b) to c, whose rows are side by side. a: [m, k], b: [k, n], any strides for `pointers`."""
    (m, k), n = a.shape, b.shape[1]
    if not c.numel():
        return
    blocks = {name: configuration[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")}
    options = {"num_stages": configuration["STAGES"], "num_warps": configuration["WARPS"], "ACTIVATION": activation}
    tiles = triton.cdiv(m, blocks["BLOCK_M"]) * triton.cdiv(n, blocks["BLOCK_N"])
    if configuration["VARIANT"] == "pointers":
        even = k % blocks["BLOCK_K"] == 0
        strides = *a.stride(), *b.stride(), c.stride(0)
        matmul_kernel[(tiles,)](a, b, c, m, n, k, *strides, EVEN_K=even, **blocks, **options)
        return
    if not (describable(a) and describable(b)):
        raise ValueError("descriptors want rows side by side, each at a multiple of 16 bytes: use `pointers`")
    a_blocks = TensorDescriptor.from_tensor(a, [blocks["BLOCK_M"], blocks["BLOCK_K"]])
    b_blocks = TensorDescriptor.from_tensor(b, [blocks["BLOCK_K"], blocks["BLOCK_N"]])
    programs = tiles
    if configuration["VARIANT"] == "persistent":
        programs = min(tiles, torch.cuda.get_device_properties(a.device).multi_processor_count)
    descriptor_kernel[(programs,)](a_blocks, b_blocks, c, m, n, k, c.stride(0), **blocks, **options)


def matmul(a, b, configuration=DEFAULT, activation="none"):
    """activation(a @ b) in a's type, summed in float32."""
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    launch(a, b, c, configuration, activation)
    return c


def inputs(m, n, k, dtype, activation, configuration, device="cuda"):
    a, b = (torch.randn(*shape, device=device).to(getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    return {"a": a, "b": b, "configuration": configuration, "activation": activation}


def run(a, b, configuration, activation):
    return matmul(a, b, configuration, activation)


def load(path):
    """The configuration that `tune.py --export` wrote."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["configuration"]
