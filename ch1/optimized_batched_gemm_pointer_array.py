"""40 products of 128 x 128 x 128 in one cuBLAS call that takes arrays of pointers: the matrices may lie anywhere.

Problem: the strided call needs matrices at equal distances. Those of a batch may be scattered over many allocations,
repeated, or shared.

Idea: cublasSgemmBatched reads 3 * 40 addresses from device memory instead of computing them from a stride. (cuBLAS
expects columns, we have rows. A row-major C = A B is a column-major C' = B' A'. So B goes first, and every leading
dimension is the length of a row.)

Cost: three arrays of 320 bytes, which must be on the device before the call. Here three tiny kernels write them, so
there are four launches where the strided version (`optimized_batched_gemm_strided.py`) has one.

Predict: if every launch took equally long and nothing else counted, what would be the ratio to the strided version?
"""

import cupy
import numpy

CLOCK = "wall"  # issuing the calls is what is measured
DEVICE = "cuda"
VERSUS = "strided"
ONE, ZERO = numpy.ones(1, numpy.float32), numpy.zeros(1, numpy.float32)  # cuBLAS takes its factors by address


def inputs(batch=40, m=128, n=128, k=128, device="cuda"):
    xp = numpy if device == "cpu" else cupy
    a = xp.random.standard_normal((batch, m, k)).astype(xp.float32)
    b = xp.random.standard_normal((batch, k, n)).astype(xp.float32)
    return {"a": a, "b": b, "out": xp.zeros((batch, m, n), xp.float32)}


def setup(a, b, out):
    index = cupy.arange(len(a), dtype=cupy.uint64)
    return {"offsets": [index * matrices[0].nbytes for matrices in (a, b, out)]}


def run(a, b, out, offsets):
    cublas, handle = cupy.cuda.cublas, cupy.cuda.get_cublas_handle()
    a_ptrs, b_ptrs, out_ptrs = (x.data.ptr + offset for x, offset in zip((a, b, out), offsets, strict=True))
    batch, m, k = a.shape
    n = b.shape[2]
    cublas.sgemmBatched(
        handle, cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, n, m, k,
        ONE.ctypes.data, b_ptrs.data.ptr, n, a_ptrs.data.ptr, k, ZERO.ctypes.data, out_ptrs.data.ptr, n, batch,
    )  # fmt: skip
    return out
