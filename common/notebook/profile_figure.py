"""A profile as a figure: lanes of the CPU, of each stream and of the GPU, with gaps named, and their sums."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from common.machine.device import has_gpu
from common.pairs.pair import Pair, short
from common.profiling import profile_file
from common.profiling.fresh_profiles import profiles_of
from common.profiling.lanes import Lane, Part, Slice, lanes
from common.profiling.profile_file import Profile
from common.record.files import RecordError
from common.show.formats import UNITS, seconds
from common.show.plot import FAINT, INK, SERIES, new_figure

GAP = "////"
LOOKS: dict[Part, tuple[str, str]] = {  # colour, hatch: of one lane, no two look alike
    Part.KERNELS: (SERIES[0], ""), Part.BESIDE: (SERIES[5], ""), Part.COPIES: (SERIES[1], ""),
    Part.HOST: (SERIES[4], GAP), Part.SYNC: (SERIES[3], GAP), Part.MEMORY: (SERIES[6], GAP),
    Part.LAUNCH: (INK, GAP), Part.END: (FAINT, ""),
    Part.PYTHON: (SERIES[2], ""), Part.OPERATORS: (SERIES[5], ""), Part.CALLS: (SERIES[1], ""), Part.WAITS: (FAINT, ""),
}  # fmt: skip


def timeline(pair: Pair, version: str = "baseline", size: str = "default", recorded: bool | None = None) -> Figure:
    """Where the time of a version's call goes. `version`: as tables have it.

    `recorded`: the recorded profile instead of one made now; by default where there is no GPU. Raises RecordError
    if there is none.
    """
    chosen = next((each for each in pair.versions if short(each.label) == version), None)
    if not chosen:
        names = ", ".join(short(each.label) for each in pair.versions)
        raise RecordError(f"{pair.name} has no version {version!r}: there are {names}")
    if recorded or (recorded is None and not has_gpu()):
        return draw(profile_file.recorded(pair, chosen, size))
    for _, recording, profile in profiles_of(pair, [chosen], size, None):
        if not profile:
            raise RecordError(f"{pair.name} {version}: {recording.problem}")
        return draw(profile)
    raise RecordError(f"{pair.name} has no size {size!r}")


def draw(profile: Profile) -> Figure:
    """The figure of a profile."""
    about, drawn = profile.about, lanes(profile)
    unit = next((unit for unit, scale in UNITS.items() if about.profiled_s >= scale), "ns")
    streams = [(number, work) for lane in drawn for number, work in lane.streams.items() if len(lane.streams) > 1]
    rows = ["CPU", *(f"stream {number}" for number, _ in streams), *(["GPU"] if len(drawn) > 1 else [])]
    entries = max(len(lane.totals) for lane in drawn)
    figure, axes = new_figure(9.0, 1.3 + 0.35 * len(rows) + 0.17 * entries)
    pieces_by_row = {lane.name: lane.slices for lane in drawn} | {f"stream {number}": work for number, work in streams}
    for row, name in enumerate(rows):
        _draw_row(axes, pieces_by_row[name], row, 1 / UNITS[unit])
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set(xlim=(0, about.profiled_s / UNITS[unit]), ylim=(len(rows) - 0.5, -0.5), xlabel=f"time ({unit})")
    axes.set_title(title(profile), fontsize=9, loc="left")
    for place, lane in zip(("outside lower left", "outside lower right"), drawn, strict=False):
        _legend(figure, lane, about.call_s, place)
    return figure


def title(profile: Profile) -> str:
    """What is drawn, and of which machine."""
    about = profile.about
    machine = f"{about.environment['device']['name']}, {about.environment['date'][:10]}"
    times = f"{seconds(about.profiled_s)} under the profiler, {seconds(about.call_s)} without it"
    return f"{about.pair} {short(about.version)}, {about.size} ({machine}): {times}"


def _draw_row(axes: Any, pieces: Sequence[Slice], row: int, scale: float) -> None:
    for part, (color, hatch) in LOOKS.items():
        bars = [(scale * piece.start_s, scale * piece.seconds) for piece in pieces if piece.part == part]
        look: Any = {"facecolor": color, "hatch": hatch, "edgecolor": INK, "linewidth": 0}
        axes.broken_barh(bars, (row - 0.35, 0.7), **look)


def _legend(figure: Figure, lane: Lane, call_s: float, place: Any) -> None:
    """Each part's time of a call without the profiler; the heading has their sum."""
    parts = lane.measured(call_s)
    handles = [
        Patch(facecolor=LOOKS[part][0], hatch=LOOKS[part][1], edgecolor=INK, linewidth=0,
              label=f"{part}: {seconds(time)}, {time / call_s:.0%}")
        for part, time in parts.items()
    ]  # fmt: skip
    heading = f"{lane.name}, of {seconds(sum(parts.values()))} without the profiler"
    figure.legend(handles=handles, title=heading, title_fontsize=8, loc=place, alignment="left")
