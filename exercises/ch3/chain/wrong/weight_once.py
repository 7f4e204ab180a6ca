"""Count what RMS norm of every row costs: as six operations of torch, and as one kernel.

Yours: the six functions at the end. `chain` and `fused` are what is counted; changing them here changes nothing.
`x` is float32 [rows, columns], `w_weight` float32 [columns]; `columns` is a multiple of 8.
"""


def chain_launches(rows, columns):
    return 6


def chain_asked_bytes(rows, columns):
    return 4 * (7 * rows * columns + 6 * rows + columns)


def chain_allocated_bytes(rows, columns):
    return 4 * (3 * rows * columns + 3 * rows)


def fused_asked_bytes(rows, columns):
    return 4 * (2 * rows * columns + columns)


def fused_distinct_bytes(rows, columns):
    return 4 * (2 * rows * columns + columns)


def fused_masked(rows, columns):
    block = 1 << (columns - 1).bit_length()
    return 3 * rows * (block - columns)
