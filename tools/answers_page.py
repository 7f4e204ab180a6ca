"""The questions of a chapter's docstrings with their answers and what was recorded: chN/ANSWERS.md.

The question is the part of a version's docstring that begins with `Predict:`. Its answer stands in chN/answers.toml, in
a table for each pair, under the version's name as in the tables (`baseline`, `optimized`, `fused`):

    [coalescing]
    adjacent = "Eight times the sectors, and the speedup is {coalescing adjacent: ratio}: more than 8, because ..."

In braces: the title of a figure, as in quoted_figures.py. A figure of another GPU is a whole link, as there:
`[](/recorded/DEVICE/ch1.md "coalescing wide: ratio")`.
"""

import ast
import re
import tomllib
from functools import partial
from pathlib import Path

from common.pairs.contract import Version
from common.pairs.pair import ROOT, Pair, discover, short
from common.pairs.user_error import UserError
from common.record.files import on_one_gpu
from common.record.record_file import combine_records
from common.record.result import PairResult
from common.record.store import chapter_records, current_filter
from common.show import quoted_figures
from common.show.pages import page as make_page
from common.show.tables import origin, ratio, share, times, variant

ANSWERS = "answers.toml"
PAGE = "ANSWERS.md"


def question(version: Version) -> str:
    """What its docstring asks, in one line; nothing if it asks nothing."""
    text = ast.get_docstring(ast.parse(version.path.read_text(encoding="utf-8"))) or ""
    sentence = " ".join(text.partition("\nPredict: ")[2].split())
    return sentence[:1].upper() + sentence[1:]


def answers(chapter: str) -> dict[tuple[str, str], str]:
    """By pair and version. Raises UserError."""
    path = ROOT / chapter / ANSWERS
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # TOML, or text that is not UTF-8
        raise UserError(f"{path}: {error}") from None
    for pair, texts in tables.items():
        if not isinstance(texts, dict) or not all(isinstance(text, str) and text.strip() for text in texts.values()):
            raise UserError(f"{path}: {pair} must be a table of answers, each a text and not empty")
    return {(pair, name): " ".join(text.split()) for pair, texts in tables.items() for name, text in texts.items()}


def pages() -> dict[Path, str]:
    """chN/ANSWERS.md of every chapter that has answers. Raises UserError where one of both lacks."""
    chapters = [path.parent.name for path in sorted(ROOT.glob(f"ch[0-9]*/{ANSWERS}"))]
    return {ROOT / chapter / PAGE: page(chapter, discover(ROOT / chapter)) for chapter in chapters}


def page(chapter: str, pairs: list[Pair]) -> str:
    texts, records = answers(chapter), chapter_records(chapter)
    gpu_records, is_current = on_one_gpu(records), current_filter(pairs)
    record = combine_records([record for _, record in gpu_records])
    questions = {(pair.name, short(version.label)) for pair in pairs for version in pair.versions if question(version)}
    if odd := sorted(questions ^ texts.keys()):
        raise UserError(f"{chapter}/{ANSWERS}: a question without an answer, or the reverse: {odd}")
    device = gpu_records[0][0].parent.name if gpu_records else ""

    def quote(title: re.Match[str]) -> str:
        make = quoted_figures.link if device else quoted_figures.figure  # before the first record there is no page
        return make(device, chapter, title[1])

    on_gpus = [item for item in records if item[1].environment["device"]["kind"] == "cuda"]
    others = [other for path, other in on_gpus if path.parent.name != device]
    sources = [("", record), *((f" on {origin(other)}", other) for other in others)] if record else []
    results = [(place, result) for place, source in sources for result in source.pairs if is_current(result)]
    return make_page(
        "tools/templates/answers.md.jinja",
        number=chapter.removeprefix("ch"),
        origin=record and origin(record),
        pairs=pairs,
        answers={
            key: quoted_figures.fill_in_figures(re.sub(r"\{([^{}]+)\}", quote, text)) for key, text in texts.items()
        },
        short=short,
        question=question,
        measured=partial(_measured, results),
    )


def _measured(results: list[tuple[str, PairResult]], version: Version, name: str) -> list[str]:
    """What was recorded of a pair's version at the default size; nothing of a baseline, which others are compared with.

    `results`: each with where it was recorded. The first that has the version counts.
    """
    for place, result in results:
        rows = [row for row in result.rows if result.name == name and row.variant == version.label and row.ratio]
        if rows:
            figures = [(row.verdict, ratio(row), times(result, row), share(result, row)) for row in rows]
            texts = [", ".join(filter(None, row_figures)) for row_figures in figures]
            return [f"{variant(row)}{place}: {text}" for row, text in zip(rows, texts, strict=True)]
    return []
