"""The console: a progress bar while pairs are measured, then the table; plain text in a pipe and under NO_COLOR."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from common.pair import Pair
from common.report import libraries, lookup, origin, ratio, share, times, variant
from common.result import Record, recorded

PLAIN_WIDTH = 220  # columns where nobody has a terminal to fit
COLORS = {"faster": "green", "slower": "red", "invalid": "bold red", "died": "bold red", "unsure": "yellow"}


def make_console(stderr: bool = False) -> Console:
    """Colours on a terminal; plain text in a pipe and under NO_COLOR."""
    file = sys.stderr if stderr else sys.stdout
    if os.environ.get("NO_COLOR") or not file.isatty():
        return Console(
            file=file,
            width=None if file.isatty() else PLAIN_WIDTH,
            force_terminal=False,
            no_color=True,
            highlight=False,
        )
    return Console(file=file, highlight=False)


@contextmanager
def progress(pairs: int) -> Iterator[Any]:
    """Yields the runner's `on_progress`: a bar on a terminal, a line a pair elsewhere, both on stderr."""
    console = make_console(stderr=True)
    seen: dict[tuple[str, str], None] = {}

    def number(pair: Pair, size: str) -> int:
        seen.setdefault((pair.name, size))
        return len(seen)

    def line(pair: Pair, size: str, stage: str, fraction: float) -> None:
        if stage == "start":
            console.print(f"[{number(pair, size)}] {pair.name} {size}", markup=False)

    if not console.is_terminal:
        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("this machine's limits", total=pairs)

        def draw(pair: Pair, size: str, stage: str, fraction: float) -> None:
            done = number(pair, size) - 1 + fraction
            bar.update(task, description=f"{pair.name} {size}: {stage}", completed=done, total=max(pairs, len(seen)))

        yield draw


def table(record: Record) -> Table:
    """A row for each conclusion; on a CPU, what was last recorded on a GPU stands beside it."""
    device, on_gpu = record.environment["device"], _gpu_records(record)
    title = device["name"] + (" (CPU results)" if device["kind"] == "cpu" else "")
    shown = Table(title=title + (", fast" if record.environment["fast"] else ""), box=SIMPLE, title_justify="left")
    headings = ["pair", "size", "variant", "verdict", "ratio [95 % interval]", "time", "of limit / datasheet"]
    with_library = any(row.vs_library for pair in record.pairs for row in pair.rows)
    headings += ["against a library"] * with_library
    headings += [f"recorded on {' / '.join(sorted({origin(old) for old in on_gpu.values()}))}"] * bool(on_gpu)
    for heading in headings:
        shown.add_column(heading)
    for pair in record.pairs:
        for row in pair.rows:
            verdict = f"[{COLORS.get(row.verdict, 'none')}]{row.verdict}[/]"
            cells = [pair.name, pair.size, variant(row), verdict, ratio(row), times(pair, row), share(pair, row)]
            cells += [libraries(row)] * with_library
            cells += [lookup(pair, row, on_gpu[pair.chapter])] if pair.chapter in on_gpu else []
            shown.add_row(*cells)
    return shown


def _gpu_records(record: Record) -> dict[str, Record]:
    """By chapter, the newest record made on a GPU; none where this one was."""
    if record.environment["device"]["kind"] == "cuda":
        return {}
    newest: dict[str, Record] = {}
    for chapter in {pair.chapter for pair in record.pairs}:
        made = [old for _, old in recorded(chapter) if old.environment["device"]["kind"] == "cuda"]
        newest |= {chapter: made[0]} if made else {}
    return newest


def print_record(record: Record, console: Console) -> None:
    console.print(table(record))
    for pair in record.pairs:
        for row in pair.rows:
            for text in filter(None, [row.reason, *(row.notes if row.versus == "baseline" else [])]):
                console.print(
                    f"{pair.name} {row.variant.removeprefix('optimized/')}: {text}", markup=False, soft_wrap=True
                )
        if pair.voided_rounds:
            console.print(f"{pair.name}: {pair.voided_rounds} round(s) voided for thermal or hardware slowdown")


def print_limits(info: dict[str, Any], limits: dict[str, dict[str, Any]], console: Console) -> None:
    """What a machine can do: measured, and as its datasheet says."""
    shown = Table(title=info["name"], box=SIMPLE, title_justify="left")
    for heading in ("resource", "measured", "datasheet", "how", "datasheet's source"):
        shown.add_column(heading)
    for key, limit in limits.items():
        unit, scale = ("GB/s", 1e9) if key.endswith("_bytes") else ("TFLOP/s", 1e12)
        rates = [f"{limit[which] / scale:.4g} {unit}" if limit[which] else "" for which in ("measured", "datasheet")]
        shown.add_row(key, *rates, limit["how"], limit["source"])
    console.print(shown)
