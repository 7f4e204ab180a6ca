"""Counts as tables, on the console and in Markdown: versions side by side, in units of what their pair has to move."""

import math
from collections.abc import Mapping, Sequence

from common.show.formats import binary, digits, seconds
from common.show.tables import head, line
from common.traffic.data import Traffic
from common.traffic.predict import Prediction
from common.traffic.versions import Counted

HEADINGS = (
    "version", "launches", "programs", "asked", "sectors", "distinct", "masked lanes", "atomics (longest queue)",
    "FLOPs", "allocated", "copied", "DRAM, modelled L2",
)  # fmt: skip
Predicted = Mapping[str, Prediction | None]  # by the label of the version
Table = tuple[list[str], list[list[str]]]


def title(name: str, size: str, found: Sequence[Counted]) -> str:
    """What is counted, how, and what 1.00x is."""
    if not any(each.traffic for each in found):
        return f"{name} {size}"
    how = "a sample of each grid's programs" if any(each.sampled for each in found) else "exact"
    unit = next((each.unit for each in found if each.traffic), math.nan)
    return f"{name} {size}, {how}" + ("" if math.isnan(unit) else f"; 1.00x = {binary(unit)}, the useful minimum")


def rows(found: Sequence[Counted], predicted: Predicted, gpu: str) -> Table:
    """Headings, and a row for each version that was counted."""
    cells = [[*cells_of(each, each.traffic), time(predicted.get(each.label))] for each in found if each.traffic]
    return filled([*HEADINGS, f"predicted, {gpu}"], cells)


def filled(headings: Sequence[str], cells: list[list[str]]) -> Table:
    """Without the columns that are empty in all rows."""
    kept = [place for place in range(len(headings)) if any(row[place] for row in cells)]
    return [headings[place] for place in kept], [[row[place] for place in kept] for row in cells]


def words(found: Sequence[Counted]) -> list[str]:
    """The lines below the table: what was not counted and why, and how far a sample may be off."""
    reasons = dict.fromkeys(each.reason for each in found if each.reason)
    names = [", ".join(name(each) for each in found if each.reason == reason) for reason in reasons]
    said = [f"{them}: not counted: {reason}" for them, reason in zip(names, reasons, strict=True)]
    return [*said, "±: the standard error of a sample's sectors"] if _errors(found) else said


def markdown(heading: str, table: Table, said: Sequence[str]) -> str:
    headings, body = table
    shown = [*head(headings), *map(line, body), ""] if body else []
    return "\n".join([f"## {heading}", "", *shown, *(f"- {text}" for text in said)]).rstrip() + "\n"


def name(counted: Counted) -> str:
    return counted.label.removeprefix("optimized/")


def of_unit(amount: float, unit: float) -> str:
    """`2.00x` of the unit; bytes where there is none; empty where there is nothing."""
    if not amount:
        return ""
    return binary(amount) if math.isnan(unit) else times(amount / unit)


def times(ratio: float) -> str:
    return f"{digits(ratio) if ratio >= 0.995 else f'{ratio:.2f}'}x"


def sectors(counted: Counted, traffic: Traffic) -> str:
    """With the standard error where programs were sampled and differ."""
    error = f" ±{traffic.error:.1%}" if traffic.error else ""
    return of_unit(traffic.sector_bytes, counted.unit) + error


def flops(traffic: Traffic, cost: Mapping[str, float]) -> str:
    """Of products, over all that the pair has to compute; where it declares none, how many."""
    done, least = (sum(n for key, n in amounts.items() if key.endswith("_flops")) for amounts in (traffic.flops, cost))
    if not done:
        return ""
    return times(done / least) if least else f"{digits(done / 1e9)} GFLOP"


def cells_of(counted: Counted, traffic: Traffic) -> list[str]:
    """What HEADINGS name, of a version that was counted."""
    total, unit = traffic.total, counted.unit
    return [
        name(counted),
        f"{total.launches:,.0f}",
        f"{total.programs:,.0f}" if total.programs else "",
        of_unit(traffic.asked_bytes, unit),
        sectors(counted, traffic),
        of_unit(traffic.distinct_bytes, unit),
        f"{total.masked / total.lanes:.1%}" if total.masked else "",
        f"{total.atomics:,.0f} ({total.queue:,.0f})" if total.atomics else "",
        flops(traffic, counted.cost),
        binary(traffic.allocated_bytes) if traffic.allocated_bytes else "",
        ", ".join(f"{key.removesuffix('_bytes')} {binary(amount)}" for key, amount in traffic.copied.items()),
        of_unit(_modelled(traffic), unit),
    ]


def _modelled(traffic: Traffic) -> float:
    """What the model leaves to the memory; 0 where it has not seen all: it is fed by Triton's kernels alone."""
    has_torch = any(kernel.name.startswith("torch.") for kernel in traffic.kernels)
    return 0.0 if has_torch else traffic.dram_bytes or 0.0


def time(prediction: Prediction | None) -> str:
    """With what takes most of it."""
    return f"{seconds(prediction.seconds)} ({prediction.by})" if prediction else ""


def _errors(found: Sequence[Counted]) -> bool:
    return any(each.traffic and each.traffic.error for each in found)
