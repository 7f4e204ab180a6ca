"""Pairs, variants and sizes that the chapters' notebooks and READMEs name exist: others would show no figures."""

import ast
import re
from itertools import product

import pytest
from cells import code_of, literals, pairs_of

from common.pairs.pair import ROOT, load

each_chapter = pytest.mark.parametrize("chapter", ["ch3", "ch4", "ch5"])
COMMANDS_END = {"ch3": "## ", "ch4": "### The search", "ch5": "## Use the layer"}  # of "Run it"


def readme(chapter, start, end):
    return (ROOT / chapter / "README.md").read_text(encoding="utf-8").split(start)[1].split(end)[0]


def sizes_of(pairs):
    """(all sizes of these pairs, their classes)."""
    sizes = {size for pair in pairs for size in pair.sizes}
    return sizes, {size.split("/")[0] for size in sizes if "/" in size} - {"check"}


def sizes_in(texts, classes):
    """What looks like a size in one of these classes."""
    return re.findall(rf"\b((?:{'|'.join(classes)})/[\w/]+)", texts)


@each_chapter
def test_each_size_that_a_cell_names_is_one_of_its_pairs(chapter):
    pairs = pairs_of(chapter)
    _, classes = sizes_of(pairs.values())
    for cell, code in code_of(chapter).items():
        found = literals(code)
        sizes, _ = sizes_of([pairs[name] for name in found if name in pairs] or pairs.values())
        assert {text for text in found if sizes_in(text, classes) == [text]} <= sizes, cell


@each_chapter
def test_every_pair_is_in_the_notebook_and_each_label_is_a_versions(chapter):
    pairs, named = pairs_of(chapter), {text for code in code_of(chapter).values() for text in literals(code)}
    assert [name for name in pairs if name not in named] == []
    labels = {version.label for pair in pairs.values() for version in pair.versions}
    assert {text for text in named if re.fullmatch(r"optimized(/\w+)?", text)} <= labels


@each_chapter
def test_the_readme_has_every_pair_and_variant_in_its_first_table(chapter):
    table = readme(chapter, "## The pairs", "## From a symptom")
    labels = [version.label.partition("/")[2] for pair in pairs_of(chapter).values() for version in pair.variants]
    assert [name for name in [*pairs_of(chapter), *filter(None, labels)] if f"`{name}`" not in table] == []


@each_chapter
def test_the_readmes_sizes_and_classes_exist(chapter):
    sizes, classes = sizes_of(pairs_of(chapter).values())
    commands = readme(chapter, "## Run it", COMMANDS_END[chapter])
    found = sizes_in(commands, classes)
    assert found and set(found) <= sizes
    assert [name for name in classes if f"`{name}`" not in commands] == []


# What the notebooks compute is what the pairs do


def test_sizes_that_cells_of_chapter_4_put_together_exist():
    tiles = re.search(r"tile_names = (\(.*\))", code_of("ch4")["spill-xray"])
    made = [f"large/{tile}" for tile in ast.literal_eval(tiles[1])]
    made += [f"long/4096/d{d}/{mask}/bf16" for d in (64, 128) for mask in ("causal", "full")]
    assert [size for size in made if not any(size in pair.sizes for pair in pairs_of("ch4").values())] == []


def test_chapter_4_orders_tiles_and_splits_as_the_pairs_do():
    pytest.importorskip("triton")
    code, pairs, here = code_of("ch4"), pairs_of("ch4"), {}
    exec(code["order-place"].split("print(")[0], here)
    (grouped,) = [version for version in pairs["matmul"].variants if version.label == "optimized/grouped"]
    theirs = load(grouped.path).swizzle.fn  # as Triton was given it
    for group in (1, 3, 8):
        places = [theirs(pid, 7, 5, group) for pid in range(35)]
        assert here["in_order"](7, 5, group) == places and len(set(places)) == 35
    split = load(pairs["split_k"].variants[0].path)
    planned = ast.literal_eval(re.search(r"splits in (\(\n.*?\n\)):", code["full-count"], re.DOTALL)[1])
    assert planned and all(split.plan(*sizes)[1:] == (tiles, splits) for *sizes, tiles, splits in planned)


def test_chapter_5_asks_for_sizes_that_exist():
    named = re.search(r"for name, wanted in (\(.*\)):", code_of("ch5")["xray"])
    made = [(pair, f"sweep/3d/4096x{width}") for pair, widths in ast.literal_eval(named[1]) for width in widths]
    assert [size for pair, size in made if size not in pairs_of("ch5")[pair].sizes] == []


def test_chapter_5_multiplies_blades_as_the_package_does(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "ch5")
    from clifford import algebra

    nodes = ast.parse(code_of("ch5")["algebra-code"]).body
    (function,) = [node for node in nodes if getattr(node, "name", "") == "multiply"]
    here = {}
    exec(compile(ast.Module([function], []), "algebra-code", "exec"), here)
    for found in map(algebra, (2, 3)):
        for (i, left), (j, right) in product(enumerate(found.blades), repeat=2):
            sign, k = found.product(i, j)
            assert here["multiply"](left, right) == (sign, found.blades[k])
