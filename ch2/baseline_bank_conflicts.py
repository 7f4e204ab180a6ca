"""Transpose through a 32 x 32 tile of shared memory whose columns lie in one bank each: 32 lanes wait for one another.

Shared memory is 32 banks wide; word k lies in bank k % 32, and each bank serves one word at a time. The tile is read
down a column, words 32 apart:

    written along a row     lanes in banks 0, 1, 2 ... 31     one pass
    read down a column      all 32 lanes in one bank          32 passes

Both sides of device memory are coalesced, as in `optimized_transpose.py`. What is left to lose lies inside the SM.

Predict before you measure: a conflict costs 32 passes instead of 1 for every 128 bytes read. Does that show at all
beside the time that device memory takes for them?
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
