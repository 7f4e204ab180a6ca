"""Count what RMS norm of every row costs: as six operations of torch, and as one kernel.

Yours: the six functions at the end. `chain` and `fused` are what is counted; changing them here changes nothing.
`x` is float32 [rows, columns], `w_weight` float32 [columns]; `columns` is a multiple of 8.
"""


def chain_launches(rows, columns):
    return 6


def chain_requested_bytes(rows, columns):
    matrix, column, weight = 4 * rows * columns, 4 * rows, 4 * columns
    square, mean, shift, root = 2 * matrix, matrix + column, 2 * column, 2 * column
    return square + mean + shift + root + (2 * matrix + column) + (2 * matrix + weight)


def chain_allocated_bytes(rows, columns):
    return 4 * (3 * rows * columns + 3 * rows)


def fused_requested_bytes(rows, columns):
    return 4 * 3 * rows * columns


def fused_distinct_bytes(rows, columns):
    return 4 * (2 * rows * columns + columns)


def fused_masked(rows, columns):
    block = 1
    while block < columns:
        block *= 2
    return 3 * rows * (block - columns)
