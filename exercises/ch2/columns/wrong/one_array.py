"""Count what a walk down the columns asks for."""


def requested_bytes(rows, columns):
    return 4 * rows * columns


def sectors(rows, columns):
    return columns * (rows + 1)


def distinct_bytes(rows, columns):
    return 32 * (-(-rows * columns // 8) - (-columns // 8))
