"""Counts as tables for the console and in Markdown: versions side by side, as multiples of the minimum work."""

import math
from collections.abc import Mapping, Sequence

from common.pairs.pair import short
from common.show.formats import binary, digits, seconds
from common.show.layout import markdown_table
from common.traffic.data import Traffic
from common.traffic.least_time import Prediction
from common.traffic.versions import VersionTraffic

PREDICTED = "predicted"
HEADINGS = (  # the most telling first: the last ones stand in a table below where a terminal is narrow
    "version", "launches", "requested", "sectors", "distinct", "FLOPs", PREDICTED, "copied",
    "atomics (longest queue)", "DRAM, modelled L2", "programs", "masked lanes", "allocated",
)  # fmt: skip
Predicted = Mapping[str, Prediction | None]  # by the version's label
Table = tuple[list[str], list[list[str]]]


def title(name: str, size: str, versions: Sequence[VersionTraffic]) -> str:
    """The title: what is counted, how, and the size of 1.00x."""
    if not any(version.traffic for version in versions):
        return f"{name} {size}"
    how = "a sample of each grid's programs" if any(version.sampled for version in versions) else "exact"
    unit = next((version.unit for version in versions if version.traffic), math.nan)
    return f"{name} {size}, {how}" + ("" if math.isnan(unit) else f"; 1.00x = {binary(unit)}, the minimum work")


def rows(versions: Sequence[VersionTraffic], predictions: Predicted, gpu: str) -> Table:
    """Headings, and one row for each counted version."""
    cells = [
        cells_of(version, version.traffic, predictions.get(version.label)) for version in versions if version.traffic
    ]
    return without_empty_columns([f"{PREDICTED}, {gpu}" if name == PREDICTED else name for name in HEADINGS], cells)


def without_empty_columns(headings: Sequence[str], cells: list[list[str]]) -> Table:
    """The table without columns that are empty in all rows."""
    kept = [place for place in range(len(headings)) if any(row[place] for row in cells)]
    return [headings[place] for place in kept], [[row[place] for place in kept] for row in cells]


def footnotes(versions: Sequence[VersionTraffic]) -> list[str]:
    """The lines below the table: versions that were not counted, with reasons; the meaning of ±."""
    reasons = dict.fromkeys(version.reason for version in versions if version.reason)
    names = [", ".join(name(version) for version in versions if version.reason == reason) for reason in reasons]
    notes = [f"{them}: not counted: {reason}" for them, reason in zip(names, reasons, strict=True)]
    return [*notes, "±: the standard error of a sample's sectors"] if _errors(versions) else notes


def markdown(heading: str, table: Table, notes: Sequence[str]) -> str:
    shown = [markdown_table(*table), ""] if table[1] else []
    return "\n".join([f"## {heading}", "", *shown, *(f"- {text}" for text in notes)]).rstrip() + "\n"


def name(counted: VersionTraffic) -> str:
    return short(counted.label)


def of_unit(amount: float, unit: float) -> str:
    """An amount as `2.00x` of the unit; in bytes without a unit; empty for 0."""
    if not amount:
        return ""
    return binary(amount) if math.isnan(unit) else times(amount / unit)


def times(ratio: float) -> str:
    return f"{digits(ratio) if ratio >= 0.995 else f'{ratio:.2f}'}x"


def sectors(counted: VersionTraffic, traffic: Traffic) -> str:
    """The sectors; with their standard error if programs were sampled and differ."""
    error = f" ±{traffic.error:.1%}" if traffic.error else ""
    return of_unit(traffic.sector_bytes, counted.unit) + error


def flops(traffic: Traffic, cost: Mapping[str, float]) -> str:
    """FLOPs of products over the FLOPs of `cost`; as an amount if the pair declares none."""
    done, least = (sum(n for key, n in amounts.items() if key.endswith("_flops")) for amounts in (traffic.flops, cost))
    if not done:
        return ""
    return times(done / least) if least else f"{digits(done / 1e9)} GFLOP"


def cells_of(counted: VersionTraffic, traffic: Traffic, prediction: Prediction | None = None) -> list[str]:
    """The cells under HEADINGS for a counted version."""
    total, unit = traffic.total, counted.unit
    return [
        name(counted),
        f"{total.launches:,.0f}",
        of_unit(traffic.requested_bytes, unit),
        sectors(counted, traffic),
        of_unit(traffic.distinct_bytes, unit),
        flops(traffic, counted.cost),
        time(prediction),
        ", ".join(f"{key.removesuffix('_bytes')} {binary(amount)}" for key, amount in traffic.copied.items()),
        f"{total.atomics:,.0f} ({total.max_atomics_per_address:,.0f})" if total.atomics else "",
        of_unit(_modelled_bytes(traffic), unit),
        f"{total.programs:,.0f}" if total.programs else "",
        f"{total.masked / total.lanes:.1%}" if total.masked else "",
        binary(traffic.allocated_bytes) if traffic.allocated_bytes else "",
    ]


def _modelled_bytes(traffic: Traffic) -> float:
    """DRAM bytes of the model; 0 if the model did not see everything: only Triton kernels feed it."""
    has_torch = any(kernel.name.startswith("torch.") for kernel in traffic.kernels)
    return 0.0 if has_torch else traffic.dram_bytes or 0.0


def time(prediction: Prediction | None) -> str:
    """A predicted time and its largest part."""
    return f"{seconds(prediction.seconds)} ({prediction.by})" if prediction else ""


def _errors(versions: Sequence[VersionTraffic]) -> bool:
    return any(version.traffic and version.traffic.error for version in versions)
