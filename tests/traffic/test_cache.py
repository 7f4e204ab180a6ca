"""The model of an L2, against caches that can be followed by hand."""

import numpy as np
import pytest

from common.traffic.l2_model import L2


def run(size_in_sectors, at_once, programs):
    """`programs`: of each its steps, as (sectors, "r", "w" or "rw")."""
    cache = L2(32 * size_in_sectors, at_once)
    for steps in programs:
        cache.program()
        for sectors, how in steps:
            cache.access(np.array(sectors, np.uint64), "r" in how, "w" in how)
    cache.drain()
    return cache.dram_bytes / 32


@pytest.mark.parametrize(
    ("size", "at_once", "programs", "moved"),
    [
        (8, 1, [[([0, 1, 2], "r"), ([0, 1, 2], "r")]], 3),  # the second time they are there
        (2, 1, [[([0], "r"), ([1], "r"), ([2], "r"), ([0], "r")]], 4),  # 0 was used longest ago
        (2, 1, [[([0], "r"), ([1], "r"), ([0], "r"), ([2], "r"), ([0], "r")]], 3),  # 0 was used again
        (8, 1, [[([0, 1], "w")]], 2),  # has to be written at last; nothing is read for it
        (8, 1, [[([0], "rw")], [([0], "rw")]], 2),  # one read, one write
        (1, 1, [[([0], "w"), ([1], "r"), ([0], "r")]], 3),  # written when it has to go, read, read again
        (2, 1, [[([0, 1], "r"), ([0, 1], "r")], [([2, 3], "r"), ([2, 3], "r")]], 4),  # one program after the other
        (2, 2, [[([0, 1], "r"), ([0, 1], "r")], [([2, 3], "r"), ([2, 3], "r")]], 8),  # in step they take it in turns
    ],
)
def test_what_memory_has_to_move(size, at_once, programs, moved):
    assert run(size, at_once, programs) == moved


def test_what_one_launch_leaves_the_next_finds():
    cache = L2(32 * 8, 4)
    for _ in range(2):
        cache.program()
        cache.access(np.arange(4, dtype=np.uint64), True, False)
        cache.drain()
    assert cache.dram_bytes == 4 * 32
