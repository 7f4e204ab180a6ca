"""The sheet as tables: all of it on the console, its levels and limits in a README."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from common.hardware.sheet import Fact, Sheet
from common.pairs.wide_tables import TIE, print_table
from common.show.console import print_limits, print_wrapped
from common.show.formats import binary, four_digits
from common.show.layout import markdown_table
from common.show.tables import LIMIT_HEADINGS, limit_rows, source

CPU_REMARKS = (
    "read: a call computes a maximum; in L1 and L2 its comparisons may be the limit",
    "latency: not measured on a CPU, because a Python step takes longer than a load",
)


def rate(per_s: float | None) -> str:
    """A rate in GB/s without the unit, which the heading names; empty for None."""
    return four_digits(per_s / 1e9) if per_s else ""


def print_sheet(sheet: Sheet, console: Console) -> None:
    """Print all of a sheet except its curves, then what its figures do not mean."""
    device = sheet.environment["device"]
    when, torch = sheet.environment["date"][:10], sheet.environment["versions"]["torch"]
    facts = [[fact.name, value(fact).replace(" ", TIE), fact.source] for fact in sheet.facts]
    print_table(f"{device['name']}, measured {when}, torch {torch}", ("fact", "value", "source"), facts, console)
    print_table("levels of the memory hierarchy, in GB/s", *level_rows(sheet), console, whole_cells=True)
    curves = sheet.bandwidth.items()
    loops = [[name, rate(points[0][1]), binary(points[0][0])] for name, points in curves if len(points) == 1]
    print_table("loops of STREAM", ("loop", "GB/s", "working set"), loops, console)
    print_limits(device, sheet.limits, console)
    by_size: dict[float, dict[str, str]] = {}
    for name, points in sheet.transfers.items():
        for size, per_s in points:
            by_size.setdefault(size, {})[name] = rate(per_s)
    rows = [[binary(size), *(by_size[size].get(name, "") for name in sheet.transfers)] for size in sorted(by_size)]
    print_table("transfers, in GB/s", ("bytes", *sheet.transfers), rows, console, whole_cells=True)
    links = [
        [" - ".join(map(str, link.between)), link.link, "yes" if link.peer_access else "no"] for link in sheet.links
    ]
    print_table("links", ("GPUs", "link", "peer access"), links, console)
    for line in CPU_REMARKS if device["kind"] == "cpu" else ():
        print_wrapped(line, console)
    if not any(limit["datasheet"] for limit in sheet.limits.values()):
        print_wrapped(f"datasheet: there is none for {device['name']}", console)


def value(fact: Fact) -> str:
    return binary(float(fact.value)) if fact.unit == "B" else f"{fact.value} {fact.unit}".strip()


def level_rows(sheet: Sheet) -> tuple[list[str], list[list[str]]]:
    """Headings and one row per level: working set, bandwidths, latency. Columns without values are left out."""
    kinds = [kind for kind in sheet.bandwidth if any(kind in level for level in sheet.levels.values())]
    headings, rows = ["level", "working set", *kinds], []
    for name, level in sheet.levels.items():
        rows.append([name, binary(level["bytes"]), *(rate(level.get(kind)) for kind in kinds)])
        if sheet.latency:
            rows[-1] += [f"{level['cycles']:.0f}", f"{1e9 * level['seconds']:.3g}"] if "cycles" in level else ["", ""]
    return headings + ["latency, cycles", "latency, ns"] * bool(sheet.latency), rows


def markdown(sheets: Sequence[tuple[Path, Sheet]]) -> str:
    """The levels and the limits of each machine under its origin; empty without sheets."""
    parts = []
    for path, sheet in sheets:
        limits = markdown_table(LIMIT_HEADINGS, limit_rows(sheet.limits))
        parts += [source((path, sheet)), "Bandwidths in GB/s:", markdown_table(*level_rows(sheet)), limits]
    return "\n\n".join(parts)
