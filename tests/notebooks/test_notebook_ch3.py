"""Pairs, variants and sizes that chapter 3's notebook and README name exist: others would show no figures."""

import ast
import json
import re

import pytest

from common.pairs.pair import ROOT, discover

PAIRS = {pair.name: pair for pair in discover(ROOT / "ch3")}
SIZE = re.compile(r"(small|medium|large|batch)/[\w/]+")
CELLS = json.loads((ROOT / "notebooks/ch3_memory_bound.ipynb").read_text(encoding="utf-8"))["cells"]
CODE = {cell["id"]: "".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"}
README = (ROOT / "ch3/README.md").read_text(encoding="utf-8")


def literals(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("%")]  # but for IPython's own
    nodes = ast.walk(ast.parse("\n".join(lines)))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize("cell", [cell for cell in CODE if any(map(SIZE.fullmatch, literals(CODE[cell])))])
def test_each_size_that_a_cell_names_is_one_of_its_pairs(cell: str):
    found = literals(CODE[cell])
    named = [PAIRS[name] for name in dict.fromkeys(found) if name in PAIRS] or list(PAIRS.values())
    sizes = {size for pair in named for size in pair.sizes}
    assert [text for text in found if SIZE.fullmatch(text) and text not in sizes] == []


def test_every_pair_is_in_the_notebook():
    assert [name for name in PAIRS if name not in {text for code in CODE.values() for text in literals(code)}] == []


def test_the_readme_has_every_pair_and_variant_in_its_first_table():
    table = README.split("## The pairs")[1].split("## From a symptom")[0]
    labels = [version.label.partition("/")[2] for pair in PAIRS.values() for version in pair.variants]
    assert [name for name in [*PAIRS, *filter(None, labels)] if f"`{name}`" not in table] == []


def test_the_readmes_sizes_exist():
    sizes = {size for pair in PAIRS.values() for size in pair.sizes}
    commands = README.split("## Run it")[1].split("## ")[0]
    found = [match[0] for match in SIZE.finditer(commands)]
    assert found
    assert [size for size in found if size not in sizes] == []
