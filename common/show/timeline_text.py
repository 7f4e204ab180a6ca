"""A profile as text for a terminal: lanes as rows of letters, what the time of a call is made of, gaps, kernels."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from common.pairs.pair import short
from common.pairs.user_error import USUAL_WIDTH, printable, wrap_text
from common.record.profile_file import Profile, spans
from common.show.formats import seconds
from common.show.lanes import BACKWARD, WORK, Lane, Part, costliest, lanes, totals
from common.show.layout import Entry, layout

LETTERS: dict[str, str] = {  # of each part, in a lane
    Part.KERNELS: "#", Part.BESIDE: "%", Part.COPIES: "=", Part.HOST: "h", Part.SYNC: "s", Part.MEMORY: "m",
    Part.LAUNCH: "l", Part.END: "e", Part.PYTHON: "p", Part.OPERATORS: "o", Part.CALLS: "c", Part.WAITS: ".",
}  # fmt: skip
HEADINGS = ("drawn", "under the profiler", "without it", "share")
COUNTED = ("DRAM", "SM", "occupancy", "sectors/request", "largest stall", "launches")
FIELD_OF = {heading: heading.split("/")[0].split()[-1].lower() for heading in COUNTED[:-1]}  # as prose names them
SHOWN = 3  # longest gaps
NUMBERED = 6  # of what works longest
COUNTED_ROWS = 8  # kernels
NAMES = 12  # of an unknown program
WIDEST = 120  # columns that lanes take, however wide the terminal
Piece = tuple[str, float, float]  # a part or a number, begin and end in seconds


def timeline_text(profile: Profile, width: int | None) -> str:
    """The whole text, in lines of this width."""
    width = min(width or USUAL_WIDTH, WIDEST)
    about, drawn = profile.about, lanes(profile)
    rows = timeline_rows(profile, drawn)
    column = max(map(len, rows)) + 2
    lines = [wrap_text(printable(line), width) for line in title(profile)]
    lines += ["", *(f"{name:{column}}{bar(row, about.profiled_s, width - column)}" for name, row in rows.items())]
    lines += [" " * column + "0" + seconds(about.profiled_s).rjust(width - column - 1), ""]
    entries = [entry for lane in drawn for entry in _entries(lane, about.call_s)]
    lines += [line.plain for line in layout(HEADINGS, entries, width)]
    return "\n".join(line.rstrip() for line in [*lines, "", *remarks(profile, drawn, width), ""])


def profile_text(profile: Profile, width: int | None) -> str:
    """The timeline of an unknown program, and the names that took most of it: how often they were called, how long."""
    width, whole = width or USUAL_WIDTH, profile.about.profiled_s
    rows = [("called", "in all", "share", "name")]
    for name, (calls, time) in [*totals(profile).items()][:NAMES]:
        rows.append((f"{calls}", seconds(time), f"{time / whole:.0%}", printable(name.replace(BACKWARD, "backward: "))))
    lines = [f"{calls:>8}  {time:>10}  {share:>6}  {name}"[:width] for calls, time, share, name in rows]
    return "\n".join([timeline_text(profile, width), "What is named in it; some of these contain others:", *lines, ""])


def title(profile: Profile) -> list[str]:
    """What is drawn, of which machine; its times."""
    about = profile.about
    machine = f"{about.environment['device']['name']}, {about.environment['date'][:10]}"
    slows = ", which slows the host" * (about.profiled_s > about.call_s)
    times = f"a call takes {seconds(about.call_s)}; {seconds(about.profiled_s)} under the profiler{slows}"
    return [f"{about.pair} {short(about.version)}, {about.size} ({machine})", times]


def timeline_rows(profile: Profile, drawn: Sequence[Lane]) -> dict[str, list[Piece]]:
    """What is drawn: each lane, the streams if there are several, and which of the numbered `remarks` works when."""
    slices = {lane.name: lane.slices for lane in drawn}
    for lane in drawn:
        slices |= {f"stream {number}": work for number, work in lane.streams.items() if len(lane.streams) > 1}
    rows = {name: [(str(one.part), one.start_s, one.end_s) for one in own] for name, own in slices.items()}
    ranks = [(str(rank) if rank <= NUMBERED else "-", events) for rank, (_, events) in enumerate(costliest(profile), 1)]
    return rows | {"which": [(rank, 1e-6 * event.ts, 1e-6 * event.end) for rank, events in ranks for event in events]}


def bar(pieces: Iterable[Piece], end_s: float, width: int) -> str:
    """A row of `width` letters: each is what takes most of its column, a space where there is nothing."""
    columns = [defaultdict[str, float](float) for _ in range(width)]
    for name, begin_s, until_s in pieces:
        first, last = begin_s * width / end_s, until_s * width / end_s
        for place in range(int(first), min(int(last) + 1, width)):
            columns[place][LETTERS.get(name, name)] += max(0.0, min(last, place + 1) - max(first, place))
    return "".join(
        max(column, key=lambda name: column[name]) if sum(column.values()) > 0.5 else " " for column in columns
    )


def _entries(lane: Lane, call_s: float) -> list[Entry]:
    """A line for each part of a lane; the title has the sums."""
    totals, measured = lane.totals, lane.measured(call_s)
    sums = {HEADINGS[1]: seconds(sum(totals.values())), HEADINGS[2]: seconds(sum(measured.values()))}
    entries = [Entry(lane.name, sums, is_title=True)]
    for part, total in totals.items():
        cells = (LETTERS[part], seconds(total), seconds(measured[part]), f"{measured[part] / call_s:.0%}")
        entries.append(Entry(part.value, dict(zip(HEADINGS, cells, strict=True))))
    return entries


def remarks(profile: Profile, drawn: Sequence[Lane], width: int) -> list[str]:
    """What works longest, the longest gaps, what streams overlap, counters, and what the profile lacks."""
    lines = []
    for rank, (name, events) in enumerate(costliest(profile)[:NUMBERED], 1):
        calls = f" in {len(events)} {'launches' if drawn[1:] else 'calls'}" * (len(events) > 1)
        lines.append(f"{rank}  {seconds(1e-6 * sum(event.dur for event in events))}{calls}: {name}")
    for lane in drawn[-1:]:
        lines += [f"gap of {seconds(gap.seconds)}: {gap.part}, before {gap.then}" for gap in lane.gaps[:SHOWN]]
        lines += [f"streams work at the same time for {seconds(lane.overlap_s)}"] * bool(lane.overlap_s)
    lines += [f"left out of the trace: {profile.about.left_out}"] * bool(profile.about.left_out)
    lines += [profile.no_counters] * bool(profile.no_counters)
    return [_fit(line, width) for line in lines] + _counted(profile, width)


def _kernels(profile: Profile) -> list[dict[str, Any]]:
    """A row of counters for each kernel, the longest in all first."""
    return sorted(profile.counters, key=lambda row: -row.get("time_ns", 0) * row["launches"])


def _counted(profile: Profile, width: int) -> list[str]:
    """A line a kernel: what it reaches of the GPU's peaks, how it loads, and what its warps wait for most."""
    rows = _kernels(profile)
    launches = sum(event.cat == "kernel" for event in profile.traceEvents)
    left = max(0, launches - sum(row["launches"] for row in rows))
    entries = [
        Entry(_fit(row["kernel"], width - 2), _cells(row) | {"launches": str(row["launches"])})
        for row in rows[:COUNTED_ROWS]
    ]
    lines = [line.plain for line in layout(COUNTED, entries, width)]
    more = [f"counters of {len(rows) - COUNTED_ROWS} further kernels are in the file"] * (len(rows) > COUNTED_ROWS)
    more += [f"counters: the first {launches - left} of {launches} launches were read"] * (bool(rows) and left > 0)
    return ["", *lines, *more] if rows else []


def _cells(row: dict[str, Any]) -> dict[str, str]:
    percent = {"DRAM": "dram_percent", "SM": "sm_percent", "occupancy": "occupancy_percent"}
    cells = {heading: f"{row[name]:.0f}%" for heading, name in percent.items() if name in row}
    if requests := row.get("l1_load_requests"):
        cells["sectors/request"] = f"{row['l1_load_sectors'] / requests:.1f}"
    if stalls := {name: value for name, value in row.items() if name.startswith("stall_")}:
        worst = max(stalls, key=lambda name: stalls[name])
        cells["largest stall"] = f"{worst.removeprefix('stall_').replace('_', ' ')} {stalls[worst]:.1f}"
    return cells


def quotable(profile: Profile) -> dict[str, str]:
    """What prose quotes of a profile: shares of a call without the profiler; times and gaps as it has them.

    Empty if the GPU did nothing.
    """
    about = profile.about
    found = {}
    for lane in lanes(profile)[1:]:
        busy = sum(total for part, total in lane.measured(about.call_s).items() if part in WORK) / about.call_s
        gap = f"{seconds(lane.gaps[0].seconds)}, {lane.gaps[0].part}" if lane.gaps else "none"
        launches = f"{len(spans(profile.traceEvents, 'kernel')):,}"
        found = {"busy": f"{busy:.0%}", "idle": f"{1 - busy:.0%}", "launches": launches, "gap": gap}
        for rank, (_, events) in enumerate(costliest(profile)[:NUMBERED], 1):
            found[f"time_{rank}"] = seconds(1e-6 * sum(event.dur for event in events))
        for rank, row in enumerate(_kernels(profile)[:COUNTED_ROWS], 1):
            found |= {f"{FIELD_OF[heading]}_{rank}": text for heading, text in _cells(row).items()}
    return found


def _fit(text: str, width: int) -> str:
    """In one line: names of kernels may have hundreds of characters, and what tells them apart comes late."""
    text = printable(text.replace("void ", "").replace("at::native::", ""))
    return text if len(text) <= width else f"{text[: width - 3]}..."
