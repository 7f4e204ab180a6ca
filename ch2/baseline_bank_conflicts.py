"""Transpose through a 32 x 32 tile of shared memory: a column of the tile lies in one bank, so 32 lanes wait.

Problem: shared memory has 32 banks. Word k lies in bank k % 32, and a bank serves one word a cycle. The lanes of a warp
read the tile down a column. Their words are 32 apart:

    written along a row     lanes in banks 0, 1, 2 ... 31     one pass
    read down a column      all 32 lanes in one bank          32 passes

Device memory is accessed along rows on both sides, as in `optimized_transpose.py`.

Cost: 8192 * 8192 / 32 column reads of 32 passes each, on 132 SMs: 508,400 cycles an SM, 0.26 ms at 1.98 GHz, the
highest clock of an H200. The memory needs 0.11 ms for 512 MiB, at the 4.8 TB/s of the datasheet.

Predict: with one pass a read (`optimized_bank_conflicts.py`) only the memory is left. If the longer of the two times
decides, how many times faster is that?
"""

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"rows": 127, "columns": 129},
    "check/one": {"rows": 1, "columns": 1},
    "check/row": {"rows": 1, "columns": 1025},
    "check/tail": {"rows": 65, "columns": 31},
    "default": {"rows": 8192, "columns": 8192},  # 256 MiB of float32 in, as many out: larger than any L2
}

transpose = cupy.RawKernel(
    r"""
extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[32][32];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (column < columns && row + k < rows) tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * columns + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;  // of the result
    for (int k = 0; k < 32; k += 8)
        if (column < rows && row + k < columns) y[(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
}
""",
    "transpose",
)


def inputs(rows=8192, columns=8192, device="cuda"):
    return {"x": cupy.random.uniform(-1, 1, (rows, columns), dtype=cupy.float32)}


def reference(x):
    return cupy.ascontiguousarray(x.T)


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


def run(x):
    rows, columns = x.shape
    y = cupy.empty((columns, rows), dtype=cupy.float32)
    grid = (-(-columns // 32), -(-rows // 32))
    transpose(grid, (32, 8), (x, y, numpy.int32(rows), numpy.int32(columns)))
    return y
