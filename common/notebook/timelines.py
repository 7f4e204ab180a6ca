"""Timelines: copies and kernels on their streams, launches of the CPU and kernels of the GPU.

Schedules are computed from durations; nothing is measured here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from common.show.formats import UNITS, seconds
from common.show.plot import SERIES, new_figure

HATCHES = ("", "//", "--")  # lines: dots are thousands of curves in an SVG
STAGES = ("copy in", "compute", "copy out")
SHOWN = 16  # at most this many bars contain the number of their chunk or launch


@dataclass(frozen=True)
class Span:
    """The work of a lane from `start_s` to `end_s`, for a chunk or a launch."""

    lane: str
    number: int
    start_s: float
    end_s: float


def streams(durations_s: tuple[float, float, float], chunks: int, buffers: int) -> list[Span]:
    """Chunks that are copied in, computed and copied out, with this number of buffers.

    A lane does one thing at a time, in order. The stages of a chunk follow each other. A chunk begins when the previous
    chunk of its buffer has been copied out.
    """
    free, ends = dict.fromkeys(STAGES, 0.0), list[float]()
    spans = []
    for chunk in range(chunks):
        now = ends[chunk - buffers] if chunk >= buffers else 0.0
        for stage, duration in zip(STAGES, durations_s, strict=True):
            start = max(now, free[stage])
            now = free[stage] = start + duration
            spans.append(Span(stage, chunk, start, now))
        ends.append(now)
    return spans


def launches(works_s: Sequence[tuple[float, float]]) -> list[Span]:
    """Launches, given as seconds of the CPU that issues each and of the GPU that executes it.

    The CPU does not wait. The GPU begins when a launch has been issued and the previous one is done.
    """
    issued, done, spans = 0.0, 0.0, list[Span]()
    for number, (host_s, device_s) in enumerate(works_s):
        begin, issued = issued, issued + host_s
        if host_s:
            spans.append(Span("CPU", number, begin, issued))
        start, done = max(issued, done), max(issued, done) + device_s
        spans.append(Span("GPU", number, start, done))
    return spans


def length_s(spans: Sequence[Span]) -> float:
    return max((span.end_s for span in spans), default=0.0)


def timelines(panels: Mapping[str, Sequence[Span]], lanes: Sequence[str] = STAGES) -> Figure:
    """One panel per schedule with a row per lane, on one time axis. A panel's title has the total time."""
    height = 0.6 + len(panels) * (0.75 + 0.3 * len(lanes))
    figure, rows = new_figure(9.0, height, len(panels), 1, sharex=True)
    longest = max(map(length_s, panels.values()))
    unit = next((unit for unit, scale in UNITS.items() if longest >= scale), "ns")
    for axes, (name, spans) in zip(rows[:, 0], panels.items(), strict=True):
        for span in spans:
            _bar(axes, span, lanes.index(span.lane), 1 / UNITS[unit], len({span.number for span in spans}) <= SHOWN)
        busy = {lane: sum(span.end_s - span.start_s for span in spans if span.lane == lane) for lane in lanes}
        shares = ", ".join(f"{lane} busy {time / length_s(spans):.0%}" for lane, time in busy.items())
        axes.set_title(f"{name}: {seconds(length_s(spans))} ({shares})", fontsize=9, loc="left")
        axes.set_yticks(range(len(lanes)), lanes, fontsize=8)
        axes.set(xlim=(0, 1.02 * longest / UNITS[unit]), ylim=(len(lanes) - 0.5, -0.5))
        axes.grid(axis="x", alpha=0.2)
    rows[-1, 0].set_xlabel(f"time ({unit})")
    return figure


def _bar(axes: Any, span: Span, row: int, scale: float, is_numbered: bool) -> None:
    left, width = scale * span.start_s, scale * (span.end_s - span.start_s)
    look: Any = {"color": SERIES[row], "hatch": HATCHES[row % len(HATCHES)], "edgecolor": "white", "linewidth": 0.8}
    axes.barh(row, width, left=left, height=0.7, **look)
    if is_numbered:
        box: Any = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(left + width / 2, row, span.number, ha="center", va="center", fontsize=8, color="black", bbox=box)
