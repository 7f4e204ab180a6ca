"""The same counts, row by row."""


def grown_bytes(lengths, room, block, width):
    return sum(2 * width * (j + 1 + j + 1) for n in lengths for j in range(n))


def grown_peak(lengths, room, block, width):
    full, most = 0, 0
    for n in lengths:
        for j in range(n):
            most = max(most, full + j + j + 1)
        full += n
    return 2 * width * most


def static_bytes(lengths, room, block, width):
    return sum(4 * width for n in lengths for _ in range(n))


def static_memory(lengths, room, block, width):
    return sum(2 * width * room for _ in lengths)


def paged_bytes(lengths, room, block, width):
    return static_bytes(lengths, room, block, width)


def paged_memory(lengths, room, block, width):
    return sum(2 * width * block for n in lengths for i in range(n) if i % block == 0)
