"""Imports in common/ point one way: to the layers before. `pytest -s` prints them."""

import ast
from pathlib import Path

import pytest

from common.pairs.pair import ROOT

LAYERS = (  # the packages and modules of common/, as common/README.md has them
    {"pairs", "isolation", "stats"},
    {"machine", "record", "xray"},
    {"checks", "show", "program"},
    {"traffic"},
    {"engine"},
    {"hardware", "learn", "profiling"},
    {"notebook"},
    {"cli"},
)


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it: `from common.a import b` may name a module, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.fixture(scope="module")
def imports():
    """Of each file of common/."""
    return {path: imported(path) for path in (ROOT / "common").rglob("*.py")}


@pytest.fixture(scope="module")
def modules(imports):
    """Module -> the modules of common/ that it imports."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): {each for each in names if each.startswith("common.")}
        for path, names in imports.items()
    }


def test_every_package_imports_only_from_the_layers_before_it(modules):
    layer = {name: number for number, names in enumerate(LAYERS) for name in names}
    arrows = {(file.split(".")[1], name.split(".")[1]) for file, names in modules.items() for name in names}
    for names in LAYERS:
        print(
            *(f"{name} <- {', '.join(sorted(b for a, b in arrows if a == name != b))}" for name in sorted(names)),
            sep="\n",
        )
    assert {(a, b) for a, b in arrows if a != b and layer[b] >= layer[a]} == set()


def test_no_modules_import_each_other_in_a_circle(modules):
    graph = {
        file: {name for known in names for name in (known, known.rpartition(".")[0])} - {file}
        for file, names in modules.items()
    }
    while free := [file for file, others in graph.items() if not others & graph.keys()]:
        graph = {file: others for file, others in graph.items() if file not in free}
    assert graph == {}


def test_no_two_files_have_one_name(modules):
    names = [name.rpartition(".")[2] for name in modules if not name.endswith(("__init__", "__main__"))]
    assert {name for name in names if names.count(name) > 1} == set()


def test_the_course_never_imports_its_maintainers_tools(imports):
    assert {each for names in imports.values() for each in names if each.split(".")[0] == "tools"} == set()
