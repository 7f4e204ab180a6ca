"""Statistics of every candidate's samples, its errors and its memory, as entries of a table."""

import numpy as np

from common.pairs.pair import short
from common.record.result import CONTROL, Arm, PairResult, Record
from common.show import formats
from common.show.layout import Entry
from common.show.tables import name_with_size

HEADINGS = ("n", "mean", "sd", "min", "max", "max err", "RMS err", "peak", "host")


def stats_entries(record: Record) -> list[Entry]:
    """For each pair a title with the unit of its times, and a line for each candidate; cells by HEADINGS.

    n, mean, sd (standard deviation), min and max are those of all samples. Errors: `result.Arm`, relative to the
    oracle's RMS. peak: the most memory in use at once, beyond the inputs; on a CPU only torch's is seen. host: the time
    to issue a call.
    """
    is_cpu = record.environment["device"]["kind"] == "cpu"
    return [entry for pair in record.pairs if pair.arms for entry in _entries(pair, is_cpu)]


def stats_remarks(record: Record) -> list[str]:
    """What the table lacks of which pairs, because nothing was timed or the record is older than the figures."""
    bases = {name_with_size(pair): pair.arms["baseline"] for pair in record.pairs if pair.arms}
    if not bases:
        return ["no statistics: nothing was timed"]
    parts = []
    for figure, field in (("errors", "max_error"), ("peak memory", "peak_bytes")):
        names = [name for name, arm in bases.items() if getattr(arm, field) is None]
        parts += [f"no {figure}" + (f" of {', '.join(names)}" if len(names) < len(bases) else "")] if names else []
    return [f"{' and '.join(parts)}: recorded before they were kept; measure again to have them"] if parts else []


def _entries(pair: PairResult, is_cpu: bool) -> list[Entry]:
    arms = {label: arm for label, arm in pair.arms.items() if label != CONTROL}
    unit = formats.seconds(min(arm.median_s for arm in arms.values())).split()[1]  # of the smallest: all stand in it
    is_seen = not is_cpu or any(arm.peak_bytes for arm in arms.values())
    # a yardstick is a ceiling, in readers' words
    lines = [Entry(short(one).replace("yardstick", "ceiling"), _cells(arms[one], unit, is_seen)) for one in arms]
    return [Entry(f"{name_with_size(pair)}, in {unit}", is_title=True), *lines]


def _cells(arm: Arm, unit: str, is_seen: bool) -> dict[str, str]:
    """The cells by HEADINGS, of what is known. Times in this unit. `is_seen`: whether the pair's memory is."""
    samples = np.concatenate(arm.seconds) / formats.UNITS[unit]
    times = {"mean": samples.mean(), "min": samples.min(), "max": samples.max()}
    times |= {"host": arm.host_s / formats.UNITS[unit]} if arm.host_s is not None else {}
    cells = {"n": str(samples.size), **{heading: formats.digits(value) for heading, value in times.items()}}
    if samples.size > 1:
        cells["sd"] = _short(samples.std(ddof=1))
    errors = {"max err": arm.max_error, "RMS err": arm.rms_error}
    cells |= {heading: f"{error:.1e}" if error else "0" for heading, error in errors.items() if error is not None}
    if arm.peak_bytes is not None and is_seen:
        cells["peak"] = formats.binary(arm.peak_bytes) if arm.peak_bytes else "0"
    return cells


def _short(value: float) -> str:
    """A spread with two significant digits."""
    return f"{value:#.2g}".rstrip(".") if value < 99.5 else f"{value:.0f}"
