"""What chapter 5's notebook counts and computes with is right, and the sizes that it puts together exist."""

import ast
import re
import sys

import pytest
import torch
from cells import code_of, pairs_of

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


@pytest.fixture
def counted():
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    needs = {"torch": torch, "TorchDispatchMode": TorchDispatchMode, "tree_leaves": tree_leaves}
    return defined("count-code", "Counted", StorageWeakRef=StorageWeakRef, **needs)["Counted"]


def test_the_counter_counts_what_operations_read_and_write(counted):
    x = torch.empty(1000, device="meta")
    with counted() as add:
        x + x
    assert (add.bytes, add.operations, add.peak) == (3 * 4000, 1, 4000)
    with counted() as views:
        x.view(10, 100).mT[3], torch.empty_like(x)
    assert (views.bytes, views.operations) == (0, 0)
    with counted() as in_place:
        x += 1
        x[:500].mul_(x[500:])
        x[:500].copy_(x[500:])
        x.zero_()
    assert (in_place.bytes, in_place.operations, in_place.peak) == ((2 + 1.5 + 1 + 1) * 4000, 4, 0)
    with counted() as broadcast:
        torch.empty(1, 1000, device="meta").expand(5, 1000).clone()
    assert broadcast.bytes == 6 * 4000


def test_the_counter_sees_what_lives_at_the_same_time(counted):
    x = torch.empty(1000, device="meta")
    with counted() as chain:
        ((x * 2) * 3) * 4
    with counted() as kept:
        y = x * 2
        z = y * 3
        y + z
    assert (chain.peak, kept.peak) == (2 * 4000, 3 * 4000)


def test_the_notebooks_products_are_the_packages():
    sys.path.append(str(ROOT / "ch5"))
    from clifford import algebra

    multiply = defined("algebra-code", "multiply")["multiply"]
    for found in map(algebra, (2, 3)):
        for i, left in enumerate(found.blades):
            for j, right in enumerate(found.blades):
                sign, k = found.product(i, j)
                assert multiply(left, right) == (sign, found.blades[k])


def test_a_warps_sectors():
    sectors = defined("layout-sectors", "sectors")["sectors"]
    assert [sectors(*of) for of in ((4, 4), (32, 4), (16, 4), (2, 2), (64, 2), (30, 2))] == [4, 32, 16, 2, 32, 30]


def test_tf32_has_ten_bits_of_fraction():
    tf32 = defined("fcgp-tf32", "tf32", torch=torch)["tf32"]
    there = torch.tensor([1.0, 1 + 2**-10, 1 + 2**-12, 1 + 2**-10 - 2**-12, -(1 + 2**-11 + 2**-20)])
    assert tf32(there).tolist() == [1.0, 1 + 2**-10, 1.0, 1 + 2**-10, -(1 + 2**-10)]
