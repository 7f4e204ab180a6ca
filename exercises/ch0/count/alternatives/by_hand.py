"""Count what three snippets ask of the memory: here every load and store is listed, and its sectors are collected."""


def touched(offsets):
    return len({4 * offset // 32 for offset in offsets})


def every_second_sectors(rows, cols):
    n_out = -(-rows * cols // 2)
    found = 0
    for begin in range(0, n_out, 64):
        lanes = range(begin, min(begin + 64, n_out))
        found += touched(2 * lane for lane in lanes) + touched(lanes)
    return found


def row_sums_sectors(rows, cols):
    return sum(touched(range(row * cols, row * cols + cols)) + 1 for row in range(rows))


def row_sums_masked(rows, cols):
    block = 1
    while block < cols:
        block *= 2
    return rows * (block - cols)


def tiles_sectors(rows, cols):
    found = 0
    for top in range(0, rows, 16):
        for left in range(0, cols, 4):
            inside = range(top, min(top + 16, rows))
            found += 2 * touched(row * cols + left + lane for row in inside for lane in range(4))
    return found
