"""Launches, bytes and new memory of a power series: the step that is saved is the one that is not made.

An operation is one launch. It reads each operand and writes its result, n floats of 4 bytes each; a number costs
nothing. `fresh` has three operations a step: term reads 1 array and writes 1, total reads 2 and writes 1, power reads
2 and writes 1. That is 8 arrays a step and 3 new ones. `torch.zeros_like` writes one array and reads none.

`in_place` has two operations a step with 3 arrays each, and no new array: the division has become a factor of the
addition. Before the loop it writes two arrays and reads one, for `clone`. It allocates 2 arrays, however many steps
there are. Fewer launches, fewer bytes, less memory: three different gains, and each is counted in its own unit.
"""


def fresh_launches(n, steps):
    return 1 + 3 * steps


def fresh_requested_bytes(n, steps):
    return 4 * n * (1 + 8 * steps)


def fresh_allocated_bytes(n, steps):
    return 4 * n * (1 + 3 * steps)


def in_place_launches(n, steps):
    return 2 + 2 * steps


def in_place_requested_bytes(n, steps):
    return 4 * n * (3 + 6 * steps)


def in_place_allocated_bytes(n, steps):
    return 4 * n * 2
