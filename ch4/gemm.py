"""The matrix product that `tune.py` searches: c = activation(a @ b), its tiles, stages, warps and variant as arguments.

The pairs of this chapter have kernels of their own, with constants in place of a configuration, so that each can be
read alone. A configuration is a dict with the keys of DEFAULT. There are three variants of the same product:

    pointers      a program for each tile; the threads compute an address for every 16 bytes that they copy
    descriptors   the same with tensor descriptors: on capability 9.0 and up one instruction copies a whole block (TMA)
    persistent    descriptors, and one program an SM: each walks over many tiles

    import gemm; c = gemm.matmul(a, b, gemm.load("best.json"), "leaky_relu")

Any m, n and k, also 0 and odd. Descriptors need rows at multiples of 16 bytes: n and k multiples of 8, and not 0.
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
        x = tl.where(x < 0, 0.0, x)  # not tl.maximum, which drops NaN
    return x


@triton.jit
def swizzle(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """(row, column) of a program's tile: GROUP_M rows of tiles before the next column, which share b in L2."""
    num_pid_n, num_pid_m = tl.cdiv(N, BLOCK_N), tl.cdiv(M, BLOCK_M)
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_in_group = pid % (GROUP_M * num_pid_n)
    return first_pid_m + pid_in_group % group_size_m, pid_in_group // group_size_m


@triton.jit
def store(
    c_ptr, acc, pid_m, pid_n, M, N, stride_cm,
    ACTIVATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    values = activate(acc, ACTIVATION).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + offs_m * stride_cm + offs_n, values, mask=(offs_m < M) & (offs_n < N))


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, ACTIVATION: tl.constexpr,
    EVEN_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = swizzle(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    offs_m = ((pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M).to(tl.int64)[:, None]  # beyond the last row: wrap around
    offs_n = ((pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N).to(tl.int64)[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        if EVEN_K:
            a, b = tl.load(a_ptrs), tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    store(c_ptr, acc, pid_m, pid_n, M, N, stride_cm, ACTIVATION, BLOCK_M, BLOCK_N)


@triton.jit
def descriptor_kernel(
    a_desc, b_desc, c_ptr, M, N, K, stride_cm, ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    num_tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), num_tiles, tl.num_programs(0)):
        pid_m, pid_n = swizzle(pid, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([pid_m * BLOCK_M, k])  # zeros beyond the edges
            b = b_desc.load([k, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        store(c_ptr, acc, pid_m, pid_n, M, N, stride_cm, ACTIVATION, BLOCK_M, BLOCK_N)


def describable(x):
    """Can a descriptor be made of a matrix? Its rows must be contiguous and begin at multiples of 16 bytes."""
    aligned = x.data_ptr() % 16 == 0 and x.stride(0) * x.element_size() % 16 == 0
    return x.numel() > 0 and x.stride(1) == 1 and aligned


def launch(a, b, c, configuration, activation="none"):
    """Write activation(a @ b) to c, whose rows are contiguous. a: [m, k], b: [k, n], any strides for `pointers`."""
    (M, K), N = a.shape, b.shape[1]
    if not c.numel():
        return
    blocks = {name: configuration[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")}
    options = {"num_stages": configuration["STAGES"], "num_warps": configuration["WARPS"], "ACTIVATION": activation}
    tiles = triton.cdiv(M, blocks["BLOCK_M"]) * triton.cdiv(N, blocks["BLOCK_N"])
    if configuration["VARIANT"] == "pointers":
        even = K % blocks["BLOCK_K"] == 0
        strides = *a.stride(), *b.stride(), c.stride(0)
        matmul_kernel[(tiles,)](a, b, c, M, N, K, *strides, EVEN_K=even, **blocks, **options)
        return
    if not (describable(a) and describable(b)):
        raise ValueError("descriptors want rows side by side, each at a multiple of 16 bytes: use `pointers`")
    a_desc = TensorDescriptor.from_tensor(a, [blocks["BLOCK_M"], blocks["BLOCK_K"]])
    b_desc = TensorDescriptor.from_tensor(b, [blocks["BLOCK_K"], blocks["BLOCK_N"]])
    programs = tiles
    if configuration["VARIANT"] == "persistent":
        programs = min(tiles, torch.cuda.get_device_properties(a.device).multi_processor_count)
    descriptor_kernel[(programs,)](a_desc, b_desc, c, M, N, K, c.stride(0), **blocks, **options)


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
