"""The questions of a chapter's docstrings with their answers and what was recorded: chN/ANSWERS.md.

The question is the part of a version's docstring that begins with `Predict:`. Its answer stands in chN/answers.toml, in
a table for each pair, under the version's name as in the tables (`baseline`, `optimized`, `fused`):

    [coalescing]
    optimized = "Eight times the sectors, and the speedup is {coalescing optimized: ratio}: more than 8, because ..."

In braces: the title of a figure, as in quoted_figures.py. A figure of another GPU is a whole link, as there:
`[](/recorded/DEVICE/ch1.md "coalescing optimized: ratio")`.
"""

import ast
import re
import tomllib
from pathlib import Path

from common.pairs.contract import Version
from common.pairs.pair import ROOT, Pair, discover, short
from common.pairs.user_error import UserError
from common.record.files import on_one_gpu
from common.record.record_file import combine_records
from common.record.result import PairResult
from common.record.store import chapter_records, current_filter
from common.show import quoted_figures
from common.show.tables import origin, ratio, share, times, variant

ANSWERS = "answers.toml"
PAGE = "ANSWERS.md"
NOTHING = "*Measured.* Not recorded yet, as it is now: `python benchmark.py --chapter {} --only {} --record`."
FOREWORD = """Every version ends its docstring with a question. Answer it before you read on: that is the exercise.
Here are the questions of this chapter, an answer to each, and the measurement that shows it. The figures are from
`recorded/`; `make readme` writes this page."""


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
    lines = [f"# Chapter {chapter.removeprefix('ch')}: questions and answers", "", FOREWORD, ""]
    lines += [f"Recorded on {origin(record)}.", ""] if record else []
    device = gpu_records[0][0].parent.name if gpu_records else ""

    def quote(title: re.Match[str]) -> str:
        make = quoted_figures.link if device else quoted_figures.figure  # before the first record there is no page
        return make(device, chapter, title[1])

    on_gpus = [item for item in records if item[1].environment["device"]["kind"] == "cuda"]
    others = [other for path, other in on_gpus if path.parent.name != device]
    sources = [("", record), *((f" on {origin(other)}", other) for other in others)] if record else []
    results = [(place, result) for place, source in sources for result in source.pairs if is_current(result)]
    for pair in pairs:
        lines += [f"## {pair.name}", ""]
        for version in pair.versions:
            name = short(version.label)
            if (pair.name, name) in texts:
                answer = quoted_figures.fill_in_figures(re.sub(r"\{([^{}]+)\}", quote, texts[pair.name, name]))
                lines += [f"**{name}**, [`{version.path.name}`]({version.path.name})", ""]
                lines += [f"*Question.* {question(version)}", "", f"*Answer.* {answer}", ""]
                recorded_lines = _measured_lines([entry for entry in results if entry[1].name == pair.name], version)
                is_missing = not recorded_lines and version is not pair.baseline
                lines += [NOTHING.format(chapter[2:], pair.name), ""] if is_missing else recorded_lines
    return "\n".join(lines).rstrip() + "\n"


def _measured_lines(results: list[tuple[str, PairResult]], version: Version) -> list[str]:
    """What was recorded of it at the default size; nothing of a baseline, which stands in the others' rows.

    `results`: of its pair, each with where it was recorded. The first that has the version counts.
    """
    for place, result in results:
        lines: list[str] = []
        for row in [row for row in result.rows if row.variant == version.label and row.ratio]:
            limit = f", {text}" if (text := share(result, row)) else ""
            sentence = f"{variant(row)}{place}: {row.verdict}, {ratio(row)}, {times(result, row)}{limit}"
            lines += [f"*Measured.* {sentence}", ""]
        if lines:
            return lines
    return []
