"""What a reader has in sight: a question without its answer, the lines of a lesson without what prints them."""

import json
import re

import pytest

from common.pairs.pair import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path, kind):
    """(cell, its text) of a kind."""
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(cell, "".join(cell["source"])) for cell in found if cell["cell_type"] == kind]


@each_notebook
def test_explanations_are_folded_and_every_fold_ends(path):
    texts = {cell["id"]: text for cell, text in cells(path, "markdown")}
    assert [name for name, text in texts.items() if text.count("<details>") != text.count("</details>")] == []
    in_sight = {name: re.sub("(?s)<details>.*?</details>", "", text) for name, text in texts.items()}
    assert [name for name, text in in_sight.items() if "**Explain.**" in text] == []


@each_notebook
def test_the_code_in_sight_is_short_and_no_line_is_cut_off_beside_the_text(path):
    code = [(cell, text.splitlines()) for cell, text in cells(path, "code")]
    in_sight = [lines for cell, lines in code if not cell["metadata"].get("jupyter", {}).get("source_hidden")]
    assert sum(bool(line.strip()) for lines in in_sight for line in lines) <= 200
    assert [(cell["id"], line) for cell, lines in code for line in lines if len(line) > 96] == []


@each_notebook
def test_what_judges_an_answer_is_folded_but_not_the_cell_that_asks_for_it(path):
    for cell, text in cells(path, "code"):
        is_folded = cell["metadata"].get("jupyter", {}).get("source_hidden", False)
        if "nb.predict(" in text:
            assert not is_folded, cell["id"]
        elif any(f"nb.{name}(" in text for name in ("against", "compared")):
            assert is_folded, cell["id"]
