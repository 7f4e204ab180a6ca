"""RMS norm as a chain moves seven matrices, as one kernel two: in numbers, for any size.

`chain` in matrices: square reads one and writes one; mean reads one; the two products read one each and write one
each. That is 7. What has one number for each row: mean writes it, the next two operations read and write it, and the
product with x reads it: 6. The last product reads the weight. Each of the six operations makes a new array.

`fused` asks for three matrices' worth: x, y, and the weight once in each program. The weight is the same array every
time, so its bytes are distinct only once, and a cache has them for all programs but the first few. Asked over distinct
is nearly 3 / 2 here, but memory has to move only what is distinct: 2 matrices where the chain moves 7. For large
matrices the ratio of the times is near 3.5.

The masked lanes are three times those beyond the row: of the load of x, of the load of the weight and of the store.
They ask for nothing.
"""


def chain_launches(rows, columns):
    return 6


def chain_requested_bytes(rows, columns):
    return 4 * (7 * rows * columns + 6 * rows + columns)


def chain_allocated_bytes(rows, columns):
    return 4 * (3 * rows * columns + 3 * rows)


def fused_requested_bytes(rows, columns):
    return 4 * 3 * rows * columns


def fused_distinct_bytes(rows, columns):
    return 4 * (2 * rows * columns + columns)


def fused_masked(rows, columns):
    block = 1 << (columns - 1).bit_length()
    return 3 * rows * (block - columns)
