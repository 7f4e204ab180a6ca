"""Transpose through a 32 x 33 tile of shared memory: one column of padding puts a column of the tile in 32 banks.

Problem: in `baseline_bank_conflicts.py` the 32 words of a column lie in the same bank.

Idea: rows of 33 words. Word (r, c) of the tile lies in bank (33 r + c) % 32 = (r + c) % 32:

    written along a row     banks r, r + 1 ... r + 31         one pass
    read down a column      banks c, c + 1 ... c + 31         one pass

Cost: 32 unused words, 3 % of the tile.

Predict: which of the widths 34, 35 and 36 would be as good as 33?
"""

import cupy
import numpy

DEVICE = "cuda"

transpose = cupy.RawKernel(
    r"""
extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[32][33];  // a row's words start one bank after the last row's
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


def run(x):
    rows, columns = x.shape
    y = cupy.empty((columns, rows), dtype=cupy.float32)
    grid = (-(-columns // 32), -(-rows // 32))
    transpose(grid, (32, 8), (x, y, numpy.int32(rows), numpy.int32(columns)))
    return y
