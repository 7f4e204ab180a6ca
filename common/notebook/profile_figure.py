"""A profile as a figure: lanes of the CPU, of each stream and of the GPU, gaps named, their sums; and what works."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Patch

from common.machine.device import has_gpu
from common.pairs.pair import Pair
from common.pairs.user_error import suggestions
from common.profiling.recorder import profiles_of
from common.record import profile_file
from common.record.files import RecordError
from common.record.profile_file import Profile
from common.show.formats import UNITS, seconds
from common.show.lanes import Lane, Part, lanes
from common.show.plot import FAINT, INK, SERIES, new_figure
from common.show.timeline_text import Piece, remarks, timeline_rows, title

GAP = "////"
LOOKS: dict[str, tuple[str, str]] = {  # colour, hatch: of one lane, no two look alike
    Part.KERNELS: (SERIES[0], ""), Part.BESIDE: (SERIES[5], ""), Part.COPIES: (SERIES[1], ""),
    Part.HOST: (SERIES[4], GAP), Part.SYNC: (SERIES[3], GAP), Part.MEMORY: (SERIES[6], GAP),
    Part.LAUNCH: (INK, GAP), Part.END: (FAINT, ""),
    Part.PYTHON: (SERIES[2], ""), Part.OPERATORS: (SERIES[5], ""), Part.CALLS: (SERIES[1], ""), Part.WAITS: (FAINT, ""),
    **{str(rank): (color, "") for rank, color in enumerate(SERIES, 1)}, "-": (FAINT, ""),
}  # fmt: skip
COLUMNS = 130  # of the text below
LINE = 0.15  # inches
WIDE = 0.01  # of the width: a bar with room for its number


def timeline(pair: Pair, version: str = "baseline", size: str = "default", recorded: bool | None = None) -> Figure:
    """Where the time of a call goes. `version`: as tables have it, or the name of a library's function.

    `recorded`: the recorded profile instead of one made now; by default where there is no GPU. Raises RecordError
    if there is none.
    """
    if not (chosen := pair.by_name.get(version)):
        raise RecordError(f"{pair.name} has no version {version!r}: {suggestions(version, pair.by_name, '--list')}")
    if recorded or (recorded is None and not has_gpu()):
        return draw(profile_file.recorded(pair, chosen.label, size))
    for _, profile in profiles_of(pair, [chosen], size, None):
        if not isinstance(profile, Profile):
            raise RecordError(f"{pair.name} {version}: {profile}")
        return draw(profile)
    raise RecordError(f"{pair.name} has no size {size!r}")


def draw(profile: Profile) -> Figure:
    """The figure of a profile."""
    about, drawn = profile.about, lanes(profile)
    unit = next((unit for unit, scale in UNITS.items() if about.profiled_s >= scale), "ns")
    rows = timeline_rows(profile, drawn)
    text = remarks(profile, drawn, COLUMNS)
    heights = [1.0 + 0.35 * len(rows), 0.45 + 0.19 * max(len(lane.totals) for lane in drawn), LINE * len(text)]
    figure, panels = new_figure(10.0, sum(heights), 3, 1, height_ratios=heights)
    axes, legends, below = panels.flat
    axes.set(xlim=(0, about.profiled_s / UNITS[unit]), ylim=(len(rows) - 0.5, -0.5), xlabel=f"time ({unit})")
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    for row, pieces in enumerate(rows.values()):
        _draw_row(axes, pieces, row, 1 / UNITS[unit])
    axes.set_title("\n".join(title(profile)), fontsize=9, loc="left")
    for panel in (legends, below):
        panel.set_axis_off()
    for place, lane in zip(("upper left", "upper right"), drawn, strict=False):
        _add_legend(legends, lane, about.call_s, place)
    below.text(0, 1, "\n".join(text), va="top", family="monospace", fontsize=7.5)
    return figure


def _draw_row(axes: Any, pieces: Sequence[Piece], row: int, scale: float) -> None:
    for name, (color, hatch) in LOOKS.items():
        bars = [(scale * begin, scale * (end - begin)) for part, begin, end in pieces if part == name]
        look: Any = {"facecolor": color, "hatch": hatch, "edgecolor": INK, "linewidth": 0}
        axes.broken_barh(bars, (row - 0.35, 0.7), **look)
        for begin, length in bars if name.isdigit() else ():
            if length > WIDE * axes.get_xlim()[1]:
                axes.text(begin + length / 2, row, name, ha="center", va="center", fontsize=8, color="black")


def _add_legend(axes: Any, lane: Lane, call_s: float, place: Any) -> None:
    """Each part's time of a call without the profiler; the heading has their sum."""
    parts = lane.measured(call_s)
    looks: Any = [{"facecolor": LOOKS[part][0], "hatch": LOOKS[part][1]} for part in parts]
    handles = [Patch(edgecolor=INK, linewidth=0, **look) for look in looks]
    labels = [f"{part}: {seconds(time)}, {time / call_s:.0%}" for part, time in parts.items()]
    heading = f"{lane.name}, of {seconds(sum(parts.values()))} without the profiler"
    axes.add_artist(Legend(axes, handles, labels, title=heading, title_fontsize=8, loc=place, alignment="left"))
