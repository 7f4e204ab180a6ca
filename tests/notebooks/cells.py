"""A chapter's pairs, the code in the cells of its notebooks, and what they show of an error."""

import ast
import json
import re
from functools import cache

from common.pairs.pair import ROOT, discover


@cache
def pairs_of(chapter):
    return {pair.name: pair for pair in discover(ROOT / chapter)}


@cache
def code_of(chapter):
    """The code cells of a chapter's notebooks (ch4_*, ch4b_*), by id: none has the id of another one."""
    paths = sorted((ROOT / "notebooks").glob(f"{chapter}[_a-z]*.ipynb"))
    cells = [cell for path in paths for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    found = [(cell["id"], "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    assert paths and len(dict(found)) == len(found), [path.name for path in paths]
    return dict(found)


def literals(text):
    """The strings in a cell's code, f-strings aside."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]  # but for IPython's own
    nodes = list(ast.walk(ast.parse("\n".join(lines))))
    parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    whole = [node for node in nodes if isinstance(node, ast.Constant) and node not in parts]
    return [node.value for node in whole if isinstance(node.value, str)]


def told(error):
    """What a notebook shows of an error, without its colours, in one line."""
    return re.sub(r"\x1b\[\d*m", "", " ".join(error._render_traceback_()))
