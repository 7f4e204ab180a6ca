"""What is written by hand agrees with the code; committed notebooks hold their outputs and nothing of a machine."""

import json
import re
from pathlib import Path

import pytest
import torch

from common.checks.tolerance import DTYPES, TOLERANCE, Tolerance
from common.pairs.pair import ROOT
from common.show import quoted_figures
from tools import minutes

READMES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "common/MEASUREMENT.md",
    *sorted(ROOT.glob("*/README.md")),
]
GLOSSARY = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_the_tolerances_in_words_are_those_in_force():
    text = (ROOT / "common/MEASUREMENT.md").read_text(encoding="utf-8")
    own = {name: dtype for dtype, name in DTYPES.items()}
    rows = []
    for name in TOLERANCE:
        row = Tolerance.for_dtype(own.get(name, torch.float32), "" if name in own else name)
        rows.append(f"| {name} | {row.rtol:g} | {row.times} | {row.floor:.1g} |")
    assert re.findall(r"^\| (?:fp|bf|tf|int)\d+ \|.*", text, flags=re.MULTILINE) == rows


def test_the_map_names_every_module():
    text = (ROOT / "common/README.md").read_text(encoding="utf-8")
    files = [path.name for path in (ROOT / "common").iterdir() if path.suffix in (".py", ".json")]
    assert [name for name in files if f"`{name}`" not in text and name != "__init__.py"] == []


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path):
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))
    targets = [ROOT / link[1:] if link.startswith("/") else path.parent / link for link in links]
    assert [str(target) for target in targets if not target.exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_its_outputs_and_nothing_of_a_machine(path: Path):
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert all(cell["execution_count"] for cell in cells), "run `make notebooks`"
    assert [cell["id"] for cell in cells if "execution" in cell["metadata"]] == []  # the times at which cells ran
    assert [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"] == []
    texts = [line for output in outputs for line in output.get("text", [])]
    assert [line for line in texts if str(ROOT) in line or re.search(r"/(home|root|Users)/", line)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_figures_that_a_notebook_quotes_are_recorded(path: Path):
    text = path.read_text(encoding="utf-8")
    assert quoted_figures.fill_in_figures(text) == text, "run `make readme`"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_states_the_minutes_that_a_reader_takes(path: Path):
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    (stated,) = re.findall(r"Allow (\d+)\s+minutes", first)
    assert int(stated) == minutes.rounded(minutes.of_notebook(path)), "run `make readme`"


def test_the_sections_of_the_short_path_exist_and_take_two_hours():
    for notebook, sections, _ in minutes.TWO_HOURS:
        path = ROOT / f"notebooks/{notebook}.ipynb"
        assert all(minutes.of_notebook(path, (section,)) > 1 for section in sections)
    assert 90 <= int(re.findall(r"Together (\d+) minutes", minutes.two_hours())[0]) <= 120


def test_minutes_are_of_words_code_predictions_and_cells_of_the_sections(tmp_path):
    cells = [("markdown", "# Title\n" + "word " * 168), ("markdown", "## 1. One\n" + "word " * 337)]
    cells += [("code", "x = 1\n" * 26), ("code", 'nb.learn.show("ch0/stride")'), ("code", 'nb.predict("a")')]
    path = tmp_path / "ch9_none.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": kind, "source": [text]} for kind, text in cells]}))
    assert minutes.of_notebook(path) == pytest.approx(1 + 2 + 1.2 + (1 / 26 + 1.2))
    assert minutes.of_notebook(path, (1,)) == pytest.approx(2 + 1.2 + (1 / 26 + 1.2))
    dense = path.rename(path.with_stem("ch7_decoding"))
    assert minutes.of_notebook(dense, (1,)) == pytest.approx(1.5 * (2 + 1.2 + (1 / 26 + 1.2)))


def test_each_word_of_the_glossary_stands_where_it_says():
    rows = re.findall(r"^\| (?!word|---)([^|]+) \| (.+) \|$", GLOSSARY, re.MULTILINE)
    assert len(rows) == sum(line.startswith("| ") for line in GLOSSARY.splitlines()) - 2 * GLOSSARY.count("| word |")
    texts = {path.name.split("_")[0].removeprefix("ch"): by_section(path) for path in NOTEBOOKS}
    for words, meaning in rows:
        any_word = "|".join(re.escape(word.strip("` ")) for word in words.split(","))
        places = re.findall(r"[(;] ?(\db?)(?:, (\d+))?(?=[;)])", meaning)
        assert places, words
        for chapter, section in places:
            text = texts[chapter][section] if section else " ".join(texts[chapter].values())
            assert re.search(rf"(?<!\w)({any_word})(s|es)?(?!\w)", text, re.IGNORECASE), (words, chapter, section)


def by_section(path: Path) -> dict[str, str]:
    """What a reader finds in each section of a notebook, without outputs."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    _, *parts = re.split(r"^## (\d+)\.", "\n".join("".join(cell["source"]) for cell in cells), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))
