"""The sheet on the console: facts, levels, limits with the datasheet's, transfers, links, and what is missing."""

from typing import Any

from rich.console import Console

from common.hardware.sheet import Sheet
from common.pairs.wide_tables import TIE, print_table
from common.show.console import print_limits, print_wrapped
from common.show.formats import binary, four_digits

FROM_NVML = ("memory bus", "PCIe generation, at present", "PCIe lanes, at present", "NVLinks, active")
ON_SOME_GPUS = {  # limits, and their requirements
    "tf32_flops": "compute capability 8.0",
    "bf16_flops": "compute capability 8.0",
    "fp8_flops": "compute capability 8.9",
    "link_bytes": "a second GPU",
}


def rate(per_s: float | None) -> str:
    """A rate in GB/s without the unit, which the heading names; empty for None."""
    return four_digits(per_s / 1e9) if per_s else ""


def print_sheet(sheet: Sheet, console: Console) -> None:
    """Print all of a sheet except its curves."""
    device = sheet.environment["device"]
    when, torch = sheet.environment["date"][:10], sheet.environment["versions"]["torch"]
    title = f"{device['name']}, measured {when}, torch {torch}"
    facts = [[fact["name"], value(fact).replace(" ", TIE), fact["source"]] for fact in sheet.facts]
    print_table(title, ("fact", "value", "source"), facts, console)
    headings, levels = level_rows(sheet)
    print_table("levels of the memory hierarchy, in GB/s", headings, levels, console, whole_cells=True)
    curves = sheet.bandwidth.items()
    loops = [[name, rate(points[0][1]), binary(points[0][0])] for name, points in curves if len(points) == 1]
    print_table("loops of STREAM", ("loop", "GB/s", "working set"), loops, console)
    print_limits(device, sheet.limits, console)
    sizes = sorted({size for points in sheet.transfers.values() for size, _ in points})
    by_size = {name: {point[0]: point[1] for point in points} for name, points in sheet.transfers.items()}
    rows = [[binary(size), *(rate(curve.get(size)) for curve in by_size.values())] for size in sizes]
    print_table("transfers, in GB/s", ("bytes", *by_size), rows, console, whole_cells=True)
    links = [
        [" - ".join(map(str, link["between"])), link["link"], "yes" if link["peer_access"] else "no"]
        for link in sheet.links
    ]
    print_table("links", ("GPUs", "link", "peer access"), links, console)
    for line in remarks(sheet):
        print_wrapped(line, console)


def value(fact: dict[str, Any]) -> str:
    return binary(fact["value"]) if fact["unit"] == "B" else f"{fact['value']} {fact['unit']}".strip()


def level_rows(sheet: Sheet) -> tuple[tuple[str, ...], list[list[str]]]:
    """Headings and one row per level: working set, bandwidths, latency. Columns without values are left out."""
    kinds = [kind for kind in sheet.bandwidth if any(kind in level for level in sheet.levels.values())]
    delays = ("cycles", "ns") if sheet.latency else ()
    rows = []
    for name, level in sheet.levels.items():
        delay = [f"{level['cycles']:.0f}", f"{1e9 * level['seconds']:.3g}"] if "cycles" in level else ["", ""]
        rows.append([name, binary(level["bytes"]), *(rate(level.get(kind)) for kind in kinds), *delay[: len(delays)]])
    return ("level", "working set", *kinds, *(f"latency, {unit}" for unit in delays)), rows


def remarks(sheet: Sheet) -> list[str]:
    """One line for each thing that this machine lacks or does not report, or that its figures do not mean."""
    device = sheet.environment["device"]
    lines = []
    if device["kind"] == "cuda":
        reported = {fact["name"] for fact in sheet.facts}
        lines += [f"{name}: not reported by NVML on this machine" for name in FROM_NVML if name not in reported]
        lines += [f"{key}: needs {what}" for key, what in ON_SOME_GPUS.items() if key not in sheet.limits]
        lines += [] if sheet.links else ["links: there is one GPU"]
    else:
        lines.append("read: a call computes a maximum; in L1 and L2 its comparisons may be the limit")
        lines.append("latency: not measured on a CPU, because a Python step takes longer than a load")
        lines.append("transfers, links: only a GPU has these")
    if not any(limit["datasheet"] for limit in sheet.limits.values()):
        lines.append(f"datasheet: there is none for {device['name']}")
    return lines
