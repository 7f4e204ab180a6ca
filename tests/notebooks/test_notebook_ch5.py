"""What chapter 5's notebook counts and computes with is right, and the sizes that it puts together exist."""

import ast
import re
import sys

import torch
from cells import code_of, pairs_of

from common.notebook import nb
from common.pairs.pair import ROOT

PAIRS, CODE = pairs_of("ch5"), code_of("ch5")


def defined(cell: str, *names: str, **here) -> dict:
    """What a cell's functions and classes of these names are, with what they need in `here`."""
    wanted = [node for node in ast.parse(CODE[cell]).body if getattr(node, "name", None) in names]
    exec(compile(ast.Module(wanted, []), cell, "exec"), here)
    return here


def test_sizes_that_a_cell_puts_together_exist():
    named = re.search(r"for name, wanted in (\(.*\)):", CODE["xray"])
    made = [(pair, f"sweep/3d/4096x{width}") for pair, widths in ast.literal_eval(named[1]) for width in widths]
    assert [size for pair, size in made if size not in PAIRS[pair].sizes] == []


def test_the_counter_counts_what_operations_read_and_write():
    x = torch.empty(1000, device="meta")
    add = nb.count(lambda: x + x)
    assert (add.requested_bytes, add.launches, add.peak_bytes) == (3 * 4000, 1, 4000)
    views = nb.count(lambda: (x.view(10, 100).mT[3], torch.empty_like(x)))
    assert (views.requested_bytes, views.launches) == (0, 0)

    def in_place():
        x.add_(1)
        x[:500].mul_(x[500:])
        x[:500].copy_(x[500:])
        x.zero_()

    found = nb.count(in_place)
    assert (found.requested_bytes, found.launches, found.peak_bytes) == ((2 + 1.5 + 1 + 1) * 4000, 4, 0)
    broadcast = nb.count(lambda: torch.empty(1, 1000, device="meta").expand(5, 1000).clone())
    assert broadcast.requested_bytes == 6 * 4000


def test_the_counter_sees_what_lives_at_the_same_time():
    x = torch.empty(1000, device="meta")

    def kept():
        y = x * 2
        z = y * 3
        return y + z

    chain = nb.count(lambda: ((x * 2) * 3) * 4)
    assert (chain.peak_bytes, chain.allocated_bytes) == (2 * 4000, 3 * 4000)
    assert nb.count(kept).peak_bytes == 3 * 4000


def test_the_notebooks_products_are_the_packages():
    sys.path.append(str(ROOT / "ch5"))
    from clifford import algebra

    multiply = defined("algebra-code", "multiply")["multiply"]
    for found in map(algebra, (2, 3)):
        for i, left in enumerate(found.blades):
            for j, right in enumerate(found.blades):
                sign, k = found.product(i, j)
                assert multiply(left, right) == (sign, found.blades[k])
