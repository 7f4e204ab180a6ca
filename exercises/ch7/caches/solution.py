"""What three caches move and take, in rows of 2 * width bytes.

    grown     step j reads j - 1 old rows and a new one, and writes j: 2 * (1 + ... + n) = n (n + 1) rows a sequence
    static    a row is read and written: 2 n rows; the memory is `room` for each sequence, whatever its length
    paged     2 n rows, too; the memory is whole blocks, so at most block - 1 rows of a sequence are empty

`torch.cat` needs the old array while it makes the new one. For the last row of a sequence these are n - 1 and n rows,
beside the caches of the sequences before. So growing wastes no row, and needs the most memory in the moment of the
copy. What it moves grows with the square of the length.
"""


def grown_bytes(lengths, room, block, width):
    return 2 * width * sum(n * (n + 1) for n in lengths)


def grown_peak(lengths, room, block, width):
    most = before = 0  # rows
    for n in lengths:
        most = max(most, before + n + n - 1)
        before += n
    return 2 * width * most


def static_bytes(lengths, room, block, width):
    return 2 * width * 2 * sum(lengths)


def static_memory(lengths, room, block, width):
    return 2 * width * room * len(lengths)


def paged_bytes(lengths, room, block, width):
    return 2 * width * 2 * sum(lengths)


def paged_memory(lengths, room, block, width):
    return 2 * width * block * sum(-(-n // block) for n in lengths)
