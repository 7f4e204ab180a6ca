"""Count what two ways to compute a power series cost: here a list of operations, (arrays read, arrays made)."""

FRESH_BEFORE, FRESH_STEP = [(0, 1)], [(1, 1), (2, 1), (2, 1)]
KEPT_BEFORE, KEPT_STEP = [(0, 1), (1, 1)], [(2, 0), (2, 0)]  # in a step a result goes into an array that is there


def fresh_launches(n, steps):
    return len(FRESH_BEFORE + FRESH_STEP * steps)


def fresh_requested_bytes(n, steps):
    return sum(4 * n * (read + 1) for read, _ in FRESH_BEFORE + FRESH_STEP * steps)


def fresh_allocated_bytes(n, steps):
    return sum(4 * n * made for _, made in FRESH_BEFORE + FRESH_STEP * steps)


def in_place_launches(n, steps):
    return len(KEPT_BEFORE + KEPT_STEP * steps)


def in_place_requested_bytes(n, steps):
    return sum(4 * n * (read + 1) for read, _ in KEPT_BEFORE + KEPT_STEP * steps)


def in_place_allocated_bytes(n, steps):
    return sum(4 * n * made for _, made in KEPT_BEFORE + KEPT_STEP * steps)
