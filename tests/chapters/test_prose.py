"""What each version's docstring has, and how long a notebook takes: a reader's time is measured, too."""

import ast
import json
import re

import pytest

from common.pairs.pair import ROOT, discover
from tools.answers_page import question

PARTS = ("Problem", "Idea", "Cost", "Predict")
WORDS_A_MINUTE = 220
RUN_MINUTES = 1.5  # the most that a notebook may run on two cores
MOST_MINUTES, MOST_LINES = 45, 40
PAIRS = [pair for folder in sorted(ROOT.glob("ch[0-9]*")) for pair in discover(folder)]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.baseline.path.parent.name}/{pair.name}")
def test_a_docstring_has_its_parts_in_order_and_ends_with_a_question(pair):
    for version in pair.versions:
        text = ast.get_docstring(ast.parse(version.path.read_text(encoding="utf-8")))
        found = re.findall(rf"^({'|'.join(PARTS)}): ", text, flags=re.MULTILINE)
        wanted = [part for part in PARTS if part != "Idea" or "Idea" in found or version.label != "baseline"]
        assert found == wanted, version.path.name
        assert question(version).endswith("?") and question(version).count("?") <= 2, version.path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_takes_the_minutes_that_it_states(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words = sum(len("".join(cell["source"]).split()) for cell in cells)
    (stated,) = re.findall(r"Allow (\d+)\s+minutes", "".join(cells[0]["source"]))
    assert words / WORDS_A_MINUTE + RUN_MINUTES <= int(stated) <= MOST_MINUTES, f"{words} words"
