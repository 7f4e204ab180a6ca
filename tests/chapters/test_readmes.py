"""What is written by hand agrees with the code; committed notebooks hold their outputs and nothing of a machine."""

import json
import re
from pathlib import Path

import pytest
import torch

from common.checks.tolerance import DTYPES, TOLERANCE, Tolerance
from common.pairs.pair import ROOT

READMES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "common/MEASUREMENT.md",
    *sorted(ROOT.glob("*/README.md")),
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WORDS_A_MINUTE, MOST_MINUTES = 220, 45
RUN_MINUTES = 1.5  # the most that a notebook may run on two cores


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
def test_a_notebook_takes_the_minutes_that_it_states(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words = sum(len("".join(cell["source"]).split()) for cell in cells)
    (stated,) = re.findall(r"Allow (\d+)\s+minutes", "".join(cells[0]["source"]))
    assert words / WORDS_A_MINUTE + RUN_MINUTES <= int(stated) <= MOST_MINUTES, f"{words} words"
