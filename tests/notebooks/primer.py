"""Chapter 0's notebook: its text, its solutions, and what a cell's code defines."""

import importlib.util
import json
import re
from tempfile import mkstemp

from common.pairs.pair import ROOT

CELLS = json.loads((ROOT / "notebooks/ch0_triton.ipynb").read_text(encoding="utf-8"))["cells"]
MARKDOWN = {cell["id"]: "".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown"}
IMPORTS = "import triton\nimport triton.language as tl\n\n\n"


def solution(name):
    return re.search(r"```python\n(.*?)```", MARKDOWN[f"{name}-solution"], re.DOTALL)[1]


def defined(text, folder):
    """What a cell's code defines, from a file of its own in the folder: Triton reads a kernel's source."""
    _, path = mkstemp(".py", dir=folder)
    with open(path, "w", encoding="utf-8") as file:
        file.write(IMPORTS + text)
    spec = importlib.util.spec_from_file_location("cell", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return vars(made)
