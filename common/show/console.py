"""The console: a progress bar while pairs are measured, then the table. Plain text in a pipe and under NO_COLOR."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from common.pairs.contract import Version
from common.pairs.pair import Pair
from common.pairs.user_error import printable, width_of
from common.pairs.wide_tables import TIE, print_table, print_wrapped
from common.record.result import Record
from common.show import stats_table, tables
from common.show.layout import LEAST, Entry, layout
from common.show.recorded_column import GpuResults, gpu_results
from common.show.summary import FEWEST, best_and_worst, class_averages
from common.show.tables import HEADINGS, LIMIT_HEADINGS, ON_GPU, by_cause, limit_rows, name_with_size, table, tally

PLAIN_WIDTH = 220  # columns where there is no terminal to fit
BAR_WIDTH = 12
WAITING = ("verified", "skipped")  # verdicts of what a GPU would time


class _Console(Console):
    """A console whose reader may close the pipe (`| head`): the program goes on. rich would end it with status 1."""

    def on_broken_pipe(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def make_console(stderr: bool = False) -> Console:
    """A console for stdout or stderr: colours on a terminal, plain text in a pipe and under NO_COLOR."""
    file = sys.stderr if stderr else sys.stdout
    width = None if file.isatty() else width_of(file) or PLAIN_WIDTH  # a terminal's may change while a bar is shown
    if os.environ.get("NO_COLOR") or not file.isatty():
        return _Console(file=file, width=width, force_terminal=False, no_color=True, highlight=False, emoji=False)
    return _Console(file=file, highlight=False, emoji=False)


@contextmanager
def progress(total: float = 1.0) -> Iterator[tuple[Callable[..., None], Console]]:
    """Show progress on stderr: a bar on a terminal that shows `what`; elsewhere each different `line` once.

    Yields tell(what, completed, out_of=total, line="") and the console of stderr, for further lines.
    """
    console, lines = make_console(stderr=True), {""}

    def tell(what: str, completed: float, out_of: float = total, line: str = "") -> None:
        if line not in lines:
            console.print(printable(line), markup=False)
        lines.add(line)

    if not console.is_terminal:
        yield tell, console
        return
    what = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (what, BarColumn(BAR_WIDTH), TimeElapsedColumn(), TimeRemainingColumn(compact=True), TextColumn("left"))
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task("")

        def move(what: str, completed: float, out_of: float = total, line: str = "") -> None:
            text = escape(printable(what))  # brackets are no markup, control characters are written out
            bar.update(task, description=text, completed=completed, total=out_of)

        yield move, console


@contextmanager
def measurement_progress(pairs: int) -> Iterator[tuple[Any, Any]]:
    """Yields the runner's callbacks `on_progress` (a bar on a terminal, else one line per pair) and `on_neighbours`."""
    started: dict[tuple[str, str, str], None] = {}  # two chapters may have a pair of one name
    reported: set[str] = set()
    with progress(pairs) as (tell, console):
        tell("this machine's limits", 0)

        def note_load(load: dict[str, str]) -> None:
            for process in [process for process in load if process not in reported]:
                print_wrapped(f"other load: {process} {load[process]}", console)
            reported.update(load)

        def show_stage(pair: Pair, size: str, stage: str, fraction: float) -> None:
            started.setdefault((pair.chapter, pair.name, size))
            line, total = f"[{len(started)}] {pair.name} {size}", max(pairs, len(started))
            tell(f"{pair.name} {size}: {stage}", len(started) - 1 + fraction, total, line)

        yield show_stage, note_load


def title(record: Record) -> str:
    """The machine's name; for a CPU, also how many threads a pair may use."""
    device = record.environment["device"]
    cores = f", {device['threads']} of {device['cores']} cores" if {"threads", "cores"} <= device.keys() else ""
    cpu = f" (CPU results{cores})" if device["kind"] == "cpu" else ""
    return device["name"] + cpu + (", fast" if record.environment["fast"] else "")


def print_record(record: Record, console: Console, pairs: Sequence[Pair] = (), stats: bool = False) -> None:
    """Print the table of a record and its tally, then the remarks, one line a cause.

    `pairs`: the measured pairs. What was recorded of them on a GPU stands in the table of a machine without one.
    `stats`: also a table of all candidates' samples, errors and memory.
    """
    old = gpu_results(record, pairs)
    is_sweep = any(name_with_size(pair) != pair.name for pair in record.pairs)
    entries = table(record.pairs, old, is_sweep)
    print_wrapped(title(record), console)
    print_entries(HEADINGS, entries, console)
    print_wrapped(tally(row for pair in record.pairs for row in pair.rows), console)
    if any("" in entry.styles or ON_GPU in entry.cells for entry in entries):  # as the styles of another device's lines
        print_wrapped(f"{old.device}: recorded on {old.origin}; its speedups are over the baseline there", console)
    if stats:
        print_entries(stats_table.HEADINGS, stats_table.stats_entries(record), console)
    for text in [*(stats_table.stats_remarks(record) if stats else []), *remarks(record, old, pairs)]:
        print_wrapped(text, console)


def print_entries(headings: Sequence[str], entries: Sequence[Entry], console: Console, least: int = LEAST) -> None:
    for line in layout(headings, entries, console.width, least):
        console.print(line, soft_wrap=True)


def remarks(record: Record, old: GpuResults, measured_pairs: Sequence[Pair]) -> list[str]:
    """What is to be said below the table. `measured_pairs`: the measured pairs."""
    pairs, texts = record.pairs, [*tables.grade_legend(record.pairs), *by_cause(record.pairs)]
    if stale := [name_with_size(pair) for pair in pairs if old.is_stale(pair)]:
        texts.append(f"changed since recorded on {old.device}: {', '.join(stale)}")
    waiting = {pair.name for pair in pairs if old.result_for(pair) and any(row.verdict in WAITING for row in pair.rows)}
    texts += _without_gpu([pair for pair in measured_pairs if pair.name in waiting])  # of the course
    voided = [f"{name_with_size(pair)} ({pair.voided_rounds})" for pair in pairs if pair.voided_rounds]
    texts += [f"rounds voided for thermal or hardware slowdown: {', '.join(voided)}"] if voided else []
    for load in dict.fromkeys(load for pair in pairs for load in pair.neighbours):
        names = ", ".join(name_with_size(pair) for pair in pairs if load in pair.neighbours)
        texts.append(f"other load ({names}): {load}")
    texts += [*class_averages(record), *best_and_worst(record)] if len(pairs) >= FEWEST else []
    return [*texts, *(f"recorded, but not shown: {text}" for text in old.problems.values())]


def _without_gpu(pairs: Sequence[Pair]) -> list[str]:
    """What a machine without a GPU can say of one of these pairs: a line, or none."""
    countable = [pair.name for pair in pairs if pair.ranks == 1 and not any(map(_is_uncounted, pair.versions))]
    compilable = [pair.name for pair in pairs if any(version.has_kernel for version in pair.versions)]
    both = [name for name in countable if name in compilable]
    parts = [f"`--count {name}` (memory traffic)" for name in (both or countable)[:1]]
    parts += [f"`--xray {name}` (machine code)" for name in (both or compilable)[:1]]
    return [f"without a GPU: {', '.join(parts)}"] if parts else []


def _is_uncounted(version: Version) -> bool:
    return "cupy" in version.imports or version.constants.get("REQUIRES", {}).get("gpus", 1) > 1


def print_spent(record: Record, console: Console) -> None:
    """Print how the time was spent: one line per pair, then the sums with their shares."""
    print_wrapped(f"this machine and its limits: {record.environment.get('survey_s', 0.0):.2f} s", console)
    names = [*dict.fromkeys(name for pair in record.pairs for name in pair.spent_s if name != "total"), "rest", "total"]
    sums = dict.fromkeys(names, 0.0)
    for pair in record.pairs:
        parts = {"total": 0.0, **pair.spent_s}
        parts["rest"] = 2 * parts["total"] - sum(parts.values())
        texts = [f"{name} {parts[name]:.2f} s" for name in names if name in parts]
        sums = {name: value + parts.get(name, 0.0) for name, value in sums.items()}
        print_wrapped(f"{pair.name} {pair.size}: {', '.join(texts)}", console)
    shares = [f"{name} {value:.2f} s ({value / (sums['total'] or 1):.0%})" for name, value in sums.items()]
    print_wrapped(f"all: {', '.join(shares)}", console)


def print_limits(info: dict[str, Any], limits: Mapping[str, Mapping[str, Any]], console: Console) -> None:
    """Print what a machine can do: measured, and from its datasheet."""
    rows = limit_rows(limits)
    tied = [[*(cell.replace(" ", TIE) for cell in row[:3]), row[3]] for row in rows]
    print_table(info["name"], LIMIT_HEADINGS[:4], tied, console)
    for source in dict.fromkeys(row[4] for row in rows if row[4]):
        print_wrapped(f"datasheet: {source}", console)
