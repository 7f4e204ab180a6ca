"""A profile in a terminal: lanes as text, what the time of a call is made of, the longest gaps and kernels."""

from collections import defaultdict

from common.pairs.pair import short
from common.pairs.user_error import USUAL_WIDTH, printable, wrap_text
from common.profiling.lanes import Lane, Part, Slice, lanes
from common.profiling.profile_file import Profile, spans
from common.show.formats import seconds
from common.show.layout import Entry, layout

LETTERS = {  # of each part, in a lane
    Part.KERNELS: "#", Part.BESIDE: "%", Part.COPIES: "=", Part.HOST: "h", Part.SYNC: "s", Part.MEMORY: "m",
    Part.LAUNCH: "l", Part.END: "e", Part.PYTHON: "p", Part.OPERATORS: "o", Part.CALLS: "c", Part.WAITS: ".",
}  # fmt: skip
HEADINGS = ("drawn", "under the profiler", "without it", "share")
SHOWN = 3  # longest gaps, kernels
WIDEST = 120  # columns that lanes take, however wide the terminal


def timeline_text(profile: Profile, width: int | None) -> str:
    """The whole text, in lines of this width."""
    width = min(width or USUAL_WIDTH, WIDEST)
    about, drawn = profile.about, lanes(profile)
    title = f"{about.pair} {short(about.version)}, {about.size}, {about.environment['device']['name']}"
    slows = ", which slows the host" * (about.profiled_s > about.call_s)
    times = f"a call takes {seconds(about.call_s)}; {seconds(about.profiled_s)} under the profiler{slows}"
    names = ["CPU", *(f"stream {number}" for lane in drawn for number in lane.streams), "GPU"[: 3 * (len(drawn) > 1)]]
    column = max(map(len, names)) + 2
    lines = [wrap_text(printable(title), width), wrap_text(times, width), ""]
    for lane in drawn:
        for number, work in lane.streams.items() if len(lane.streams) > 1 else ():
            lines.append(f"{f'stream {number}':{column}}{bar(work, about.profiled_s, width - column)}")
        lines.append(f"{lane.name:{column}}{bar(lane.slices, about.profiled_s, width - column)}")
    end = seconds(about.profiled_s)
    lines += [" " * column + "0" + end.rjust(width - column - 1), ""]
    lines += [
        line.plain
        for line in layout(HEADINGS, [entry for lane in drawn for entry in _entries(lane, about.call_s)], width)
    ]
    return "\n".join([*lines, *_remarks(profile, drawn, width), ""])


def bar(slices: tuple[Slice, ...], end_s: float, width: int) -> str:
    """A lane as `width` letters: each is the part that takes most of its column, a space where there is none."""
    columns = [defaultdict[str, float](float) for _ in range(width)]
    for piece in slices:
        first, last = piece.start_s * width / end_s, piece.end_s * width / end_s
        for place in range(int(first), min(int(last) + 1, width)):
            columns[place][LETTERS[piece.part]] += max(0.0, min(last, place + 1) - max(first, place))
    return "".join(
        max(column, key=lambda letter: column[letter]) if sum(column.values()) > 0.5 else " " for column in columns
    )


def _entries(lane: Lane, call_s: float) -> list[Entry]:
    """A line for each part of a lane; the title has the sums."""
    totals, measured = lane.totals, lane.measured(call_s)
    sums = {HEADINGS[1]: seconds(sum(totals.values())), HEADINGS[2]: seconds(sum(measured.values()))}
    entries = [Entry(lane.name, sums, is_title=True)]
    for part, total in totals.items():
        share = f"{measured[part] / call_s:.0%}"
        cells = (LETTERS[part], seconds(total), seconds(measured[part]), share)
        entries.append(Entry(part.value, dict(zip(HEADINGS, cells, strict=True))))
    return entries


def _remarks(profile: Profile, drawn: list[Lane], width: int) -> list[str]:
    """The longest gaps and kernels, what streams overlap, what the profile lacks."""
    remarks = []
    for lane in drawn[1:]:
        gaps = sorted((piece for piece in lane.slices if piece.then), key=lambda piece: -piece.seconds)[:SHOWN]
        remarks += [f"gap of {seconds(gap.seconds)}: {gap.part}, before {gap.then}" for gap in gaps]
        if lane.overlap_s:
            remarks.append(f"streams work at the same time for {seconds(lane.overlap_s)}")
    work = defaultdict[str, list[float]](list)
    on_gpu = spans(profile.traceEvents, "kernel", "gpu_memcpy", "gpu_memset")
    for event in on_gpu or [event for event in spans(profile.traceEvents, "cpu_op") if not event.args.get("depth")]:
        work[event.name].append(1e-6 * event.dur)
    for name, times in sorted(work.items(), key=lambda item: -sum(item[1]))[:SHOWN]:
        count = f" in {len(times)} launches" if on_gpu else f" in {len(times)} calls"
        remarks.append(f"{seconds(sum(times))}{count * (len(times) > 1)}: {name}")
    remarks += [f"left out of the trace: {profile.about.left_out}"] * bool(profile.about.left_out)
    remarks += [profile.no_counters] * bool(profile.no_counters)
    return [_fit(printable(remark), width) for remark in remarks]


def _fit(text: str, width: int) -> str:
    """In one line: names of kernels may have hundreds of characters."""
    return text if len(text) <= width else f"{text[: width - 3]}..."
