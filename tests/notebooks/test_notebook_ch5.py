"""Pairs, variants and sizes that chapter 5's notebook and README name exist; what the notebook counts with is right."""

import ast
import json
import re
import sys

import pytest
import torch

from common.pairs.pair import ROOT, discover

PAIRS = {pair.name: pair for pair in discover(ROOT / "ch5")}
SIZE = re.compile(r"(2d|sweep|types|plain|fcgp)/[\w/]+")
CELLS = json.loads((ROOT / "notebooks/ch5_clifford.ipynb").read_text(encoding="utf-8"))["cells"]
CODE = {cell["id"]: "".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"}
README = (ROOT / "ch5/README.md").read_text(encoding="utf-8")
SIZES = {size for pair in PAIRS.values() for size in pair.sizes}


def literals(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("%")]  # but for IPython's own
    nodes = list(ast.walk(ast.parse("\n".join(lines))))
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}  # of f-strings
    whole = [node for node in nodes if isinstance(node, ast.Constant) and node not in parts]
    return [node.value for node in whole if isinstance(node.value, str)]


def defined(cell: str, *names: str, **here) -> dict:
    """What a cell's functions and classes of these names are, with what they need in `here`."""
    wanted = [node for node in ast.parse(CODE[cell]).body if getattr(node, "name", None) in names]
    exec(compile(ast.Module(wanted, []), cell, "exec"), here)
    return here


@pytest.mark.parametrize("cell", [cell for cell in CODE if any(map(SIZE.fullmatch, literals(CODE[cell])))])
def test_each_size_that_a_cell_names_is_one_of_its_pairs(cell: str):
    found = literals(CODE[cell])
    named = [PAIRS[name] for name in dict.fromkeys(found) if name in PAIRS] or list(PAIRS.values())
    sizes = {size for pair in named for size in pair.sizes}
    assert [text for text in found if SIZE.fullmatch(text) and text not in sizes] == []


def test_sizes_that_a_cell_puts_together_exist():
    named = re.search(r"for name, wanted in (\(.*\)):", CODE["xray"])
    made = [(pair, f"sweep/3d/4096x{width}") for pair, widths in ast.literal_eval(named[1]) for width in widths]
    assert [size for pair, size in made if size not in PAIRS[pair].sizes] == []


def test_every_pair_is_in_the_notebook():
    assert [name for name in PAIRS if name not in {text for code in CODE.values() for text in literals(code)}] == []


def test_the_notebooks_labels_are_versions_of_the_pairs():
    labels = [text for code in CODE.values() for text in literals(code) if text.startswith("optimized")]
    assert labels
    assert set(labels) <= {version.label for pair in PAIRS.values() for version in pair.versions}


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


def test_the_readme_has_every_pair_and_variant_in_its_first_table():
    table = README.split("## The pairs")[1].split("## From a symptom")[0]
    labels = [version.label.partition("/")[2] for pair in PAIRS.values() for version in pair.variants]
    assert [name for name in [*PAIRS, *filter(None, labels)] if f"`{name}`" not in table] == []


def test_the_readmes_sizes_and_classes_exist():
    commands = README.split("## Run it")[1].split("## Use the layer")[0]
    found = [match[0] for match in SIZE.finditer(commands)]
    assert found
    assert [size for size in found if size not in SIZES] == []
    classes = {size.split("/")[0] for size in SIZES if "/" in size and not size.startswith("check")}
    assert [name for name in classes if f"| `{name}` |" not in commands] == []
