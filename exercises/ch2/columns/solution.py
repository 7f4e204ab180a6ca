"""Three counts of a walk down the columns.

A program asks for 4 bytes of each of its rows, and for 4 bytes of the result. Its rows lie 4 * columns bytes apart, at
least 32, so no two lanes of a load share a sector: each row is a sector, and the store of 4 bytes is one more. Eight
neighbouring columns use the same sectors, but eight programs ask for them. A launch needs each of them only once from
memory, if a cache keeps it until the last of the eight has asked.

For long columns, sectors * 32 is about 8 * requested_bytes and distinct_bytes is about requested_bytes. What the memory
really moves lies between the two. It depends on the cache: which programs run at the same time, and how much else they
load.
"""


def requested_bytes(rows, columns):
    return 4 * (rows * columns + columns)  # x, and the sums


def sectors(rows, columns):
    return columns * (rows + 1)


def distinct_bytes(rows, columns):
    return 32 * (_sectors_of(rows * columns) + _sectors_of(columns))


def _sectors_of(elements):
    return -(-4 * elements // 32)  # rounded up
