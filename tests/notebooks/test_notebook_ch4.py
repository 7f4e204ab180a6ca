"""Pairs, variants and sizes that chapter 4's notebook and README name exist: others would show no figures."""

import ast
import json
import re

import pytest

from common.pairs.pair import ROOT, discover

PAIRS = {pair.name: pair for pair in discover(ROOT / "ch4")}
SIZE = re.compile(r"(small|medium|large|long|order|odd)/[\w/]+")
CELLS = json.loads((ROOT / "notebooks/ch4_gemm_and_fusion.ipynb").read_text(encoding="utf-8"))["cells"]
CODE = {cell["id"]: "".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"}
README = (ROOT / "ch4/README.md").read_text(encoding="utf-8")
SIZES = {size for pair in PAIRS.values() for size in pair.sizes}


def literals(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("%")]  # but for IPython's own
    nodes = list(ast.walk(ast.parse("\n".join(lines))))
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}  # of f-strings
    whole = [node for node in nodes if isinstance(node, ast.Constant) and node not in parts]
    return [node.value for node in whole if isinstance(node.value, str)]


@pytest.mark.parametrize("cell", [cell for cell in CODE if any(map(SIZE.fullmatch, literals(CODE[cell])))])
def test_each_size_that_a_cell_names_is_one_of_its_pairs(cell: str):
    found = literals(CODE[cell])
    named = [PAIRS[name] for name in dict.fromkeys(found) if name in PAIRS] or list(PAIRS.values())
    sizes = {size for pair in named for size in pair.sizes}
    assert [text for text in found if SIZE.fullmatch(text) and text not in sizes] == []


def test_sizes_that_a_cell_puts_together_exist():
    tiles = re.search(r"tile_names = (\(.*\))", CODE["spill-xray"])
    made = [f"large/{tile}" for tile in ast.literal_eval(tiles[1])]
    made += [f"long/4096/d{d}/{mask}/bf16" for d in (64, 128) for mask in ("causal", "full")]
    assert [size for size in made if size not in SIZES] == []


def test_every_pair_is_in_the_notebook():
    assert [name for name in PAIRS if name not in {text for code in CODE.values() for text in literals(code)}] == []


def test_the_notebook_orders_tiles_and_splits_as_the_pairs_do():
    pytest.importorskip("triton")
    from common.pairs.pair import load

    here: dict = {}
    exec(CODE["order-place"].split("print(")[0], here)
    exec("import math\n" + CODE["full-count"].split("lines =")[0], here)
    theirs = load(PAIRS["matmul"].variants[-1].path).swizzle.fn  # as Triton was given it
    for group in (1, 3, 8):
        places = [here["swizzle"](pid, 7, 5, group) for pid in range(35)]
        assert places == [theirs(pid, 7, 5, group) for pid in range(35)]
        assert len(set(places)) == 35
    split = load(PAIRS["split_k"].variants[0].path)
    for m, n, k in ((16, 4096, 16_384), (1, 67, 1999), (256, 256, 65_536), (512, 512, 16_384), (4096, 4096, 4096)):
        _, tiles, splits, _ = split.plan(m, n, k)
        assert here["plan"](m, n, k) == (tiles, splits)


def test_the_readme_has_every_pair_and_variant_in_its_first_table():
    table = README.split("## The pairs")[1].split("## From a symptom")[0]
    labels = [version.label.partition("/")[2] for pair in PAIRS.values() for version in pair.variants]
    assert [name for name in [*PAIRS, *filter(None, labels)] if f"`{name}`" not in table] == []


def test_the_readmes_sizes_and_classes_exist():
    commands = README.split("## Run it")[1].split("### The search")[0]
    found = [match[0] for match in SIZE.finditer(commands)]
    assert found
    assert [size for size in found if size not in SIZES] == []
    classes = {size.split("/")[0] for size in SIZES if "/" in size and not size.startswith("check")}
    assert [name for name in classes if f"| `{name}` |" not in commands] == []
