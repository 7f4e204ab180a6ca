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
