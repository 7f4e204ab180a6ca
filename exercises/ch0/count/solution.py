"""Sectors of three snippets: what counts is which sectors a load touches, not how many bytes it asks for.

`every_second` uses every second element, so it touches every sector of `x` and uses half of each. Its stores are side
by side. A block of 64 lanes begins at a sector's start in `x` and in `out`, so no sector is shared by two programs.

`row_sums` loads cols / 8 sectors a row. Each program stores 4 bytes, and this store is a sector of its own: `rows`
sectors for an array that has only rows / 8. The block is the next power of two, so its masked lanes are what that is
larger than `cols`.

`tiles` has rows of 4 elements: 16 bytes, half of a sector. Two programs load each sector, and two store to it. A
masked row of a tile touches nothing.
"""


def every_second_sectors(rows, cols):
    n = rows * cols
    return n // 8 + -(-n // 2 // 8)  # the load, and the store of n / 2 elements, rounded up


def row_sums_sectors(rows, cols):
    return rows * (cols // 8 + 1)


def row_sums_masked(rows, cols):
    block = 1 << (cols - 1).bit_length()
    return rows * (block - cols)


def tiles_sectors(rows, cols):
    return 2 * rows * (cols // 4)
