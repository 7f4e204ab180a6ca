"""The questions of a chapter's docstrings with their answers and what was recorded: chN/ANSWERS.md.

The question is the part of a version's docstring that begins with `Predict:`. Its answer stands in chN/answers.toml, in
a table for each pair, under the version's name as in the tables (`baseline`, `optimized`, `fused`):

    [coalescing]
    optimized = "Eight times the sectors, and the ratio is {coalescing optimized: ratio}: more than 8, because ..."

In braces: the title of a figure, as in quoted.py. A figure of another GPU than the page's is a whole link, as there:
`[](/recorded/DEVICE/ch1.md "coalescing optimized: ratio")`.
"""

import ast
import re
import tomllib
from pathlib import Path

from common.pairs.contract import Version
from common.pairs.one_line import OneLine
from common.pairs.pair import ROOT, Pair, discover
from common.record.archive import current, recorded, together
from common.record.files import on_one_gpu
from common.record.result import PairResult
from common.show import quoted
from common.show.tables import origin, ratio, share, times, variant

ANSWERS = "answers.toml"
PAGE = "ANSWERS.md"
NOTHING = "*Measured.* Not recorded yet, as it is now: `python benchmark.py --chapter {} --only {}`."
FOREWORD = """Every version ends its docstring with a question. Answer it before you read on: that is the exercise.
Here are the questions of this chapter, an answer to each, and the measurement that shows it. The figures are from
`recorded/`; `python -m common.cli.readmes` writes this page."""


def question(version: Version) -> str:
    """What its docstring asks, in one line; nothing if it asks nothing."""
    text = ast.get_docstring(ast.parse(version.path.read_text(encoding="utf-8"))) or ""
    asked = " ".join(text.partition("\nPredict: ")[2].split())
    return asked[:1].upper() + asked[1:]


def name(version: Version) -> str:
    return version.label.removeprefix("optimized/")


def answers(chapter: str) -> dict[tuple[str, str], str]:
    """By pair and version. Raises OneLine."""
    path = ROOT / chapter / ANSWERS
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise OneLine(f"{path}: {error}") from None
    return {(pair, of): " ".join(text.split()) for pair, texts in tables.items() for of, text in texts.items()}


def pages() -> dict[Path, str]:
    """chN/ANSWERS.md of every chapter that has answers. Raises OneLine where a question has none, or an answer none."""
    chapters = [path.parent.name for path in sorted(ROOT.glob(f"ch[0-9]*/{ANSWERS}"))]
    return {ROOT / chapter / PAGE: page(chapter, discover(ROOT / chapter)) for chapter in chapters}


def page(chapter: str, pairs: list[Pair]) -> str:
    known, found = answers(chapter), on_one_gpu(recorded(chapter))
    record = together([each for _, each in found])
    asked = {(pair.name, name(version)) for pair in pairs for version in pair.versions if question(version)}
    if odd := sorted(asked ^ known.keys()):
        raise OneLine(f"{chapter}/{ANSWERS}: a question without an answer, or the reverse: {odd}")
    lines = [f"# Chapter {chapter.removeprefix('ch')}: questions and answers", "", FOREWORD, ""]
    lines += [f"Recorded on {origin(record)}.", ""] if record else []
    device = found[0][0].parent.name if found else ""

    def quote(title: re.Match[str]) -> str:
        return quoted.link(device, chapter, title[1])

    results = {result.name: result for result in record.pairs if current(pairs)(result)} if record else {}
    for pair in pairs:
        lines += [f"## {pair.name}", ""]
        for version in pair.versions:
            if (pair.name, name(version)) in known:
                answer = quoted.filled_in(re.sub(r"\{([^{}]+)\}", quote, known[pair.name, name(version)]))
                lines += [f"**{name(version)}**, [`{version.path.name}`]({version.path.name})", ""]
                lines += [f"*Question.* {question(version)}", "", f"*Answer.* {answer}", ""]
                measured = _measured(results.get(pair.name), version)
                lines += (
                    measured if measured or version is pair.baseline else [NOTHING.format(chapter[2:], pair.name), ""]
                )
    return "\n".join(lines).rstrip() + "\n"


def _measured(result: PairResult | None, version: Version) -> list[str]:
    """What was recorded of it at the default size; nothing of a baseline, which stands in the others' rows."""
    lines: list[str] = []
    if not result:
        return lines
    for row in [row for row in result.rows if row.variant == version.label and row.ratio]:
        limit = f", {text} limit" if (text := share(result, row)) else ""
        lines += [f"*Measured.* {variant(row)}: {row.verdict}, {ratio(row)}, {times(result, row)}{limit}", ""]
    return lines
