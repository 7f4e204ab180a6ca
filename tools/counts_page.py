"""recorded/<device>/counts.md: the memory traffic of every version, its predicted least time, and the measured time.

One page for each GPU with a measured datasheet (hardware.json) and recorded chapters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.cli import counts
from common.cli.counts import CountedPair
from common.cli.prediction_rates import ISSUE, LAUNCH, measured_sheets, rates_of_sheet
from common.pairs.pair import Pair
from common.record import files, store
from common.record.result import PairResult
from common.show.formats import digits, seconds
from common.show.pages import page
from common.traffic import traffic_tables
from common.traffic.least_time import Prediction, Rates, predict_time
from common.traffic.versions import VersionTraffic

FILE = "counts.md"
SHOWN = ("version", "launches", "requested", "sectors", "distinct", "FLOPs")
HEADINGS = ("pair", *SHOWN, traffic_tables.PREDICTED, "measured", "predicted / measured")
STALE = "stale: the pair has changed since"
SOURCES = {(LAUNCH.name, LAUNCH.label), (ISSUE.name, ISSUE.label)}
FAR = 2.0  # predicted / measured beyond this factor: the page names a likely reason
LONG_QUEUE = 1000  # from this many lanes waiting for one address, an atomic queue may determine the time
Chapters = dict[str, list[Pair]]


@dataclass(frozen=True)
class ComparedTime:
    """A version with a predicted and a measured time."""

    name: str
    version: VersionTraffic
    prediction: Prediction
    measured_s: float
    clock: str

    @property
    def ratio(self) -> float:
        return self.prediction.seconds / self.measured_s

    @property
    def cause(self) -> str:
        """The likely reason why the prediction is far off, as far as the counts show."""
        assert self.version.traffic
        traffic, by, parts = self.version.traffic, self.prediction.by, self.prediction.parts
        of_torch = sum(kernel.launches for kernel in traffic.kernels if kernel.name.startswith("torch."))
        if self.ratio > 1 and by == "host":
            return "one call of the host issues many launches: a captured graph"
        if self.ratio > 1:
            return "a cache nearer to the SMs serves a part of what is counted for memory or L2"
        if traffic.total.max_atomics_per_address >= LONG_QUEUE:
            return f"{traffic.total.max_atomics_per_address:,.0f} atomic operations on one address wait for each other"
        if traffic.copied:
            in_turn = sum(parts.values()) > self.measured_s / FAR
            return "copies and kernels wait for each other" if in_turn else "copies of memory that is not pinned"
        if 2 * of_torch > traffic.launches:
            return "a library's kernels: they move more data than their operands, or compute below the peak"
        if by == "L2" and traffic.sector_bytes > FAR * traffic.requested_bytes:
            return "few of a sector's bytes are used, and it is loaded again after a cache has evicted it"
        if by not in ("memory", "L2", "launches", "host"):
            return f"products below the {by} peak"
        return "not visible in the counts: latency, occupancy, work that is not counted"


def pages(chapters: Chapters, problems: files.Problems | None = None) -> dict[Path, str]:
    """The pages by path. Bad files are noted in `problems`; without it they raise RecordError."""
    counted = counts.load_counts(problems)
    rates = {path.with_name(FILE): rates_of_sheet(sheet, path.parent) for path, sheet in measured_sheets(problems)}
    return {path: _page(counted, chapters, path.parent, gpu) for path, gpu in rates.items() if counted and gpu}


def paths(problems: files.Problems | None = None) -> list[Path]:
    """The paths of the pages."""
    return [path.with_name(FILE) for path, _ in measured_sheets(problems)] if counts.load_counts(problems) else []


def _page(counted: Sequence[CountedPair], chapters: Chapters, folder: Path, rates: Rates) -> str:
    sections, times = [], list[ComparedTime]()
    for chapter, pairs in chapters.items():
        results = _results(chapter, pairs, folder)
        rows = [row for pair in pairs for row in _rows(pair, counted, results.get(pair.name), rates, times)]
        sections.append((chapter, rows, _exact(chapter, pairs, counted)))
    clocks = {"all": ("device", "wall"), "on the GPU's clock": ("device",), "on the wall clock": ("wall",)}
    far = sorted((time for time in times if not 1 / FAR <= time.ratio <= FAR), key=lambda time: time.ratio)
    return page(
        "tools/templates/counts.md.jinja",
        rates=rates,
        headings=HEADINGS,
        chapters=sections,
        groups=[(label, [time.ratio for time in times if time.clock in of]) for label, of in clocks.items()],
        spread=_spread,
        far=f"{FAR:.0f}",
        far_off=[(time.name, traffic_tables.times(time.ratio), time.prediction.by, time.cause) for time in far],
    )


def _results(chapter: str, pairs: list[Pair], folder: Path) -> dict[str, PairResult]:
    """The newest result of each pair at its default size on this device, if the pair is unchanged."""
    is_current, problems = store.current_filter(pairs), files.Problems()  # the chapter's own page reports bad files
    records = [record for path, record in store.chapter_records(chapter, problems=problems) if path.parent == folder]
    newest_last = [result for record in reversed(records) for result in record.pairs]
    return {result.name: result for result in newest_last if result.size == "default" and is_current(result)}


def _rows(
    pair: Pair, counted: Sequence[CountedPair], result: PairResult | None, rates: Rates, times: list[ComparedTime]
) -> list[list[str]]:
    """One row per version at the default size. Measured versions are added to `times`.

    Versions whose time serves as a rate are not added: they would prove nothing.
    """
    key = (pair.chapter, pair.name, "default")
    pair_counts = next((other for other in counted if (other.chapter, other.name, other.size) == key), None)
    if pair_counts is None or not pair_counts.is_current(pair):
        note = "not counted" if pair_counts is None else STALE
        return [[pair.name, "", note, *[""] * (len(HEADINGS) - 3)]]
    rows = []
    for version in pair_counts.versions:
        name, traffic = traffic_tables.name(version), version.traffic
        arm = result.arms.get(version.label) if result else None
        measured = f"{seconds(arm.median_s)}{' (wall)' * (result.clock == 'wall')}" if arm and result else ""
        if traffic is None:
            rows.append([pair.name, name, f"not counted: {version.reason}", *[""] * 5, measured, ""])
            continue
        prediction, ratio = predict_time(traffic, rates, pair_counts.clock == "wall"), ""
        if prediction and arm and result:
            time = ComparedTime(f"{pair.name} {name}", version, prediction, arm.median_s, result.clock)
            ratio = traffic_tables.times(time.ratio)
            times += [] if (pair.name, version.label) in SOURCES else [time]
        cells = dict(zip(traffic_tables.HEADINGS, traffic_tables.cells_of(version, traffic), strict=True))
        shown = [cells[heading] for heading in SHOWN]
        rows.append([pair.name, *shown, traffic_tables.time(prediction), measured, ratio])
    return rows


def _exact(chapter: str, pairs: list[Pair], counted: Sequence[CountedPair]) -> traffic_tables.Table:
    """A table of the chapter's pairs at their size `count`, where every program runs; no rows if there is none."""
    of_chapter = [pair_counts for pair_counts in counted if pair_counts.chapter == chapter]
    by_name = {pair_counts.name: pair_counts for pair_counts in of_chapter if pair_counts.size == "count"}
    rows: list[list[str]] = []
    for pair in [pair for pair in pairs if pair.name in by_name]:
        if not by_name[pair.name].is_current(pair):
            rows.append([pair.name, "", STALE, *[""] * (len(traffic_tables.HEADINGS) - 2)])
            continue
        for counted_version in by_name[pair.name].versions:
            if counted_version.traffic:
                version, *cells = traffic_tables.cells_of(counted_version, counted_version.traffic)
                rows.append([pair.name, version + " (sampled)" * counted_version.sampled, *cells])
    return traffic_tables.without_empty_columns(["pair", *traffic_tables.HEADINGS], rows)


def _spread(ratios: list[float]) -> str:
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    mean = float(np.exp(np.mean(np.log(ratios))))
    ends = f"quartiles {digits(low)}, {digits(middle)} and {digits(high)}, from {digits(min(ratios))} to"
    near = f"{sum(1 / FAR <= ratio <= FAR for ratio in ratios)} within a factor of {FAR:.0f}"
    text = f"{len(ratios)} versions, geometric mean of predicted / measured {digits(mean)}"
    return f"{text}, {ends} {digits(max(ratios))}; {near}"
