"""The console: a progress bar while pairs are measured, then the table; plain text in a pipe and under NO_COLOR."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from common.pairs.pair import Pair
from common.pairs.sizes import class_of
from common.record.result import PairResult, Record
from common.show.beside import lookup, on_gpu
from common.show.report import HEADINGS, cells, variant
from common.show.summary import SIZE_HEADINGS, standings

PLAIN_WIDTH = 220  # columns where nobody has a terminal to fit
COLORS = {"faster": "green", "slower": "red", "invalid": "bold red", "died": "bold red", "unsure": "yellow"}


class _Console(Console):
    """Whose reader may have seen enough, as in `| head`: the program goes on, where rich would end it with status 1."""

    def on_broken_pipe(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def make_console(stderr: bool = False) -> Console:
    """Colours on a terminal; plain text in a pipe and under NO_COLOR."""
    file = sys.stderr if stderr else sys.stdout
    if os.environ.get("NO_COLOR") or not file.isatty():
        return _Console(
            file=file,
            width=None if file.isatty() else PLAIN_WIDTH,
            force_terminal=False,
            no_color=True,
            highlight=False,
        )
    return _Console(file=file, highlight=False)


@contextmanager
def progress(pairs: int) -> Iterator[tuple[Any, Any]]:
    """Yields the runner's `on_progress` (a bar on a terminal, else a line a pair) and `on_neighbours`; on stderr."""
    console = make_console(stderr=True)
    seen: dict[tuple[str, str], None] = {}
    known: set[str] = set()

    def note(found: dict[str, str]) -> None:
        for who, what in found.items():
            if who not in known:
                console.print(f"not alone on this machine: {who} {what}", markup=False, soft_wrap=True)
            known.add(who)

    def number(pair: Pair, size: str) -> int:
        seen.setdefault((pair.name, size))
        return len(seen)

    def line(pair: Pair, size: str, stage: str, fraction: float) -> None:
        if stage == "start":
            console.print(f"[{number(pair, size)}] {pair.name} {size}", markup=False)

    if not console.is_terminal:
        yield line, note
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("this machine's limits", total=pairs)

        def draw(pair: Pair, size: str, stage: str, fraction: float) -> None:
            done = number(pair, size) - 1 + fraction
            bar.update(task, description=f"{pair.name} {size}: {stage}", completed=done, total=max(pairs, len(seen)))

        yield draw, note


def table(record: Record, old: dict[str, list[Record]]) -> Table:
    """A row for each conclusion, with what `old` holds of it beside it; columns that would be empty are left out."""
    lines: list[list[str]] = []
    origins: dict[str, None] = {}
    is_sweep = any(named(pair) != pair.name for pair in record.pairs)
    columns = SIZE_HEADINGS if is_sweep else ("pair", "size", *HEADINGS[1:])
    for pair in record.pairs:
        for row in pair.rows:
            verdict, *figures = cells(pair, row, spread=is_sweep)
            beside, where = lookup(pair, row, old.get(pair.chapter, []))
            origins |= {where: None} if where else {}
            shown_verdict = f"[{COLORS.get(verdict, 'none')}]{verdict}[/]"
            lines.append([pair.name, pair.size, variant(row), shown_verdict, *figures, beside])
    shown = Table(title=title(record), box=SIMPLE, title_justify="left")
    filled = [any(line[column] for line in lines) for column in range(len(columns) + 1)]
    for column, heading in enumerate((*columns, f"recorded on {' / '.join(origins)}")):
        if filled[column]:
            shown.add_column(heading, no_wrap=column in (0, 2))  # a cut name names nothing
    for line in lines:
        shown.add_row(*[cell for cell, wanted in zip(line, filled, strict=True) if wanted])
    return shown


def named(pair: PairResult) -> str:
    """A pair's name, with the size unless that is the default."""
    return pair.name if class_of(pair.size) == "default" else f"{pair.name} {pair.size}"


def title(record: Record) -> str:
    """The machine; on a CPU, with the threads that a pair may use."""
    device = record.environment["device"]
    cpu = f" (CPU results, {device['threads']} of {device['cores']} cores)" if device["kind"] == "cpu" else ""
    return device["name"] + cpu + (", fast" if record.environment["fast"] else "")


def print_record(record: Record, console: Console) -> None:
    """The table, then what must be said of its rows; there, too, what was recorded, if the table would be too wide."""
    old, problem = on_gpu(record)
    beside = table(record, old)
    fits = Measurement.get(console, console.options.update(max_width=1000), beside).maximum <= console.width
    console.print(beside if fits else table(record, {}))
    for pair in record.pairs:
        for row in pair.rows:
            texts = [row.reason, *(row.notes if row.versus == "baseline" else [])]
            said, where = lookup(pair, row, old.get(pair.chapter, []))
            if said and not fits:
                texts.append(f"recorded on {where}: {said}")
            for text in filter(None, texts):
                _say(f"{named(pair)} {variant(row)}: {text}", console)
        if pair.voided_rounds:
            _say(f"{named(pair)}: {pair.voided_rounds} round(s) voided for thermal or hardware slowdown", console)
    for text in dict.fromkeys(text for pair in record.pairs for text in pair.neighbours):
        names = dict.fromkeys(pair.name for pair in record.pairs if text in pair.neighbours)
        _say(f"not alone on this machine ({', '.join(names)}): {text}", console)
    for text in standings(record):
        _say(text, console)
    if problem:
        _say(f"nothing recorded is shown: {problem}", console)


def print_spent(record: Record, console: Console) -> None:
    """Where the time went: a line a pair, and one of all together with shares."""
    _say(f"this machine and its limits: {record.environment.get('survey_s', 0.0):.2f} s", console)
    names = [*dict.fromkeys(name for pair in record.pairs for name in pair.spent_s if name != "total"), "rest", "total"]
    sums = dict.fromkeys(names, 0.0)
    for pair in record.pairs:
        parts = {"total": 0.0, **pair.spent_s}
        parts["rest"] = 2 * parts["total"] - sum(parts.values())
        shown = [f"{name} {parts[name]:.2f} s" for name in names if name in parts]
        sums = {name: value + parts.get(name, 0.0) for name, value in sums.items()}
        _say(f"{pair.name} {pair.size}: {', '.join(shown)}", console)
    shares = [f"{name} {value:.2f} s ({value / (sums['total'] or 1):.0%})" for name, value in sums.items()]
    _say(f"all: {', '.join(shares)}", console)


def _say(text: str, console: Console) -> None:
    console.print(text, markup=False, soft_wrap=True)


LIMIT_HEADINGS = ("resource", "measured", "datasheet", "how", "datasheet's source")


def limit_rows(limits: dict[str, dict[str, Any]]) -> list[list[str]]:
    """A row for each resource, in GB/s or TFLOP/s."""
    rows = []
    for key, limit in limits.items():
        unit, scale = ("GB/s", 1e9) if key.endswith("_bytes") else ("TFLOP/s", 1e12)
        rates = [f"{limit[which] / scale:.4g} {unit}" if limit[which] else "" for which in ("measured", "datasheet")]
        rows.append([key, *rates, limit["how"], limit["source"]])
    return rows


def print_limits(info: dict[str, Any], limits: dict[str, dict[str, Any]], console: Console) -> None:
    """What a machine can do: measured, and as its datasheet says."""
    shown = Table(title=info["name"], box=SIMPLE, title_justify="left")
    for heading in LIMIT_HEADINGS:
        shown.add_column(heading)
    for row in limit_rows(limits):
        shown.add_row(*row)
    console.print(shown)
