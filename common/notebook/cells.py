"""What a cell shows: the lesson as a diff, results in a table."""

import ast
import difflib
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

from IPython.display import Markdown, display

from common.engine import runner
from common.machine.clock import Clock, make_clock
from common.notebook.markup import Coloured, bar, diff, has_reader
from common.pairs.contract import Version, is_inherited
from common.pairs.pair import Pair, load
from common.pairs.source import UNHASHED, omitted_statements
from common.record.result import PairResult, Record, Row
from common.show import tables
from common.show.layout import markdown, markdown_table


def table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> Markdown:
    """The rows under their headings; without rows, a line that says so."""
    lines = list(rows)
    return Markdown(markdown_table(headings, lines) if lines else "*No table: there are no figures for it here.*")


def show_diff(pair: Pair, label: str = "optimized", versus: str | None = None) -> Coloured:
    """The diff between a variant and another version: the lesson.

    `versus`: a label; by default the one that the variant's VERSUS names, otherwise the baseline's.
    """
    new = pair.version(label)
    old = pair.version(versus or new.versus or "baseline")
    names = old.path.name, new.path.name
    return diff(difflib.unified_diff(_lesson(old, new), _lesson(new, old), *names, n=2, lineterm=""))


def _lesson(version: Version, other: Version) -> list[str]:
    """A version's lines without docstring, SIZES and VERSUS; a baseline's without what the other has from it."""
    text = version.path.read_text(encoding="utf-8")
    docstring, *body = ast.parse(text).body
    written = other.functions.keys() | other.constants.keys()

    def is_no_lesson(name: str) -> bool:
        return name in UNHASHED or (version.label == "baseline" and is_inherited(name) and name not in written)

    lines = text.splitlines()
    edits = {docstring: [], **omitted_statements(body, is_no_lesson)}
    for node, instead in sorted(edits.items(), key=lambda edit: edit[0].lineno, reverse=True):
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        lines[first - 1 : node.end_lineno] = instead
    return re.sub(r"\n{3,}", "\n\n\n", "\n".join(lines).strip()).splitlines()


def ready(version: Version, size: dict[str, Any], device: str = "cpu") -> Callable[[], Any]:
    """One call of a version, set up in this process. On the device "meta" it has shapes without values."""
    module = load(version.path)
    inputs = module.inputs(**size, device=device)
    return partial(module.run, **inputs, **(module.setup(**inputs) if hasattr(module, "setup") else {}))


@cache
def cpu_clock() -> Clock:
    """The harness's clock for this machine's CPU."""
    return make_clock("wall", "cpu")


def seconds_of(call: Callable[[], Any], least_s: float = 2e-3, tries: int = 5) -> float:
    """Seconds of one call on this machine's CPU: the best of `tries` samples of at least `least_s` each."""
    once = min(cpu_clock().sample([call]).seconds for _ in range(3))
    calls = [call] * max(1, int(least_s / once))
    return min(cpu_clock().sample(calls).seconds for _ in range(tries))


def run_pairs(pairs: list[Pair], size: str = "default", **how: Any) -> Record:
    """As the harness measures them. A reader sees how far it is, and then how long it took."""
    if not has_reader():
        return runner.run_pairs(pairs, size, **how)
    begin, started, line = time.perf_counter(), set(), display(bar("this machine's limits", 0.0), display_id=True)

    def tell(pair: Pair, size: str, stage: str, fraction: float) -> None:
        started.add((pair.name, size))
        share = (len(started) - 1 + fraction) / max(len(started), len(pairs))
        line.update(bar(f"{pair.name} {size}: {stage}", share))

    record = runner.run_pairs(pairs, size, on_progress=tell, **how)
    line.update(bar(f"measured in {time.perf_counter() - begin:.0f} s", 1.0))
    return record


def row_of(pair: PairResult, label: str = "optimized", versus: str = "baseline") -> Row:
    """The conclusion about a variant."""
    return next(row for row in pair.rows if (row.variant, row.versus) == (label, versus))


def show(record: Record) -> Markdown:
    """A record's table under its origin, then the remarks on its rows."""
    remarks = [f"- {text}" for text in tables.by_cause(record.pairs)]
    shown = markdown(tables.HEADINGS[:5], tables.table(record.pairs))  # from the verdict to the share of the limit
    return Markdown("\n".join([f"*{tables.origin(record)}*", "", shown, "", *remarks]))
