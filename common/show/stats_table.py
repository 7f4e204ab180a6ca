"""Statistics of every candidate's samples, its errors and its memory, as entries of a table."""

from collections.abc import Callable, Iterable

import numpy as np

from common.pairs.pair import short
from common.record.result import CONTROL, Arm, PairResult, Record
from common.show import formats
from common.show.layout import Entry
from common.show.tables import named

HEADINGS = ("n", "mean", "sd", "min", "max", "max err", "RMS err", "peak", "host")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}


def stats_entries(record: Record) -> list[Entry]:
    """For each pair a title with the units of its times and memory, and a line for each candidate; cells by HEADINGS.

    n, mean, sd (standard deviation), min and max are those of all samples. Errors: `result.Arm`, relative to the
    oracle's RMS. peak: the most memory in use at once, beyond the inputs. host: the time to issue a call.
    """
    return [entry for pair in record.pairs if pair.arms for entry in _entries(pair)]


def stats_remarks(record: Record) -> list[str]:
    """What the table lacks of which pairs, because nothing was timed or the record is older than the figures."""
    bases = {named(pair): pair.arms["baseline"] for pair in record.pairs if pair.arms}
    if not bases:
        return ["no statistics: nothing was timed"]
    parts = []
    for figure, field in (("errors", "max_error"), ("peak memory", "peak_bytes")):
        names = [name for name, arm in bases.items() if getattr(arm, field) is None]
        parts += [f"no {figure}" + (f" of {', '.join(names)}" if len(names) < len(bases) else "")] if names else []
    return [f"{' and '.join(parts)}: recorded before they were kept; measure again to have them"] if parts else []


def _entries(pair: PairResult) -> list[Entry]:
    arms = {label: arm for label, arm in pair.arms.items() if label != CONTROL}
    peaks = [arm.peak_bytes for arm in arms.values() if arm.peak_bytes]
    time = _unit((arm.median_s for arm in arms.values()), formats.seconds)
    memory = _unit(peaks, formats.binary) if peaks else ""
    title = Entry(f"{named(pair)}, in {time}" + (f" and {memory}" if memory else ""), is_title=True)
    names = {label: short(label).replace("yardstick", "ceiling") for label in arms}  # in readers' words
    return [title, *(Entry(names[label], _cells(arm, time, memory)) for label, arm in arms.items())]


def _unit(values: Iterable[float], written: Callable[[float], str]) -> str:
    """The unit in which the smallest is written: all stand in it."""
    return written(min(values)).split()[1]


def _cells(arm: Arm, time: str, memory: str) -> dict[str, str]:
    """The cells by HEADINGS, of what is known. Times and memory in the units named."""
    samples = np.concatenate(arm.seconds) / UNITS[time]
    times = {"mean": samples.mean(), "min": samples.min(), "max": samples.max()}
    times |= {"host": arm.host_s / UNITS[time]} if arm.host_s is not None else {}
    cells = {"n": str(samples.size), **{heading: formats.digits(value) for heading, value in times.items()}}
    if samples.size > 1:
        cells["sd"] = _short(samples.std(ddof=1))
    errors = {"max err": arm.max_error, "RMS err": arm.rms_error}
    cells |= {heading: f"{error:.1e}" if error else "0" for heading, error in errors.items() if error is not None}
    if arm.peak_bytes is not None:
        cells["peak"] = formats.digits(arm.peak_bytes / UNITS[memory]) if arm.peak_bytes else "0"
    return cells


def _short(value: float) -> str:
    """A spread with two significant digits."""
    return f"{value:#.2g}".rstrip(".") if value < 99.5 else f"{value:.0f}"
