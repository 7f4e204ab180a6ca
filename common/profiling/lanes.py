"""Where a call's time goes: lanes of the CPU and the GPU, cut into slices that cover the call, so that they add up.

A gap of the GPU is named by what the host did when the GPU became idle: the next launch was not issued yet, because the
host was slow, waited for the GPU, or asked for memory; or it was, and the GPU began late.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from common.profiling.profile_file import Event, Profile, spans

Interval = tuple[float, float]
Piece = tuple["Part", Interval, str]  # `Slice` in microseconds
COPIES = ("cudaMemcpy", "cuMemcpy")  # where "Async" follows, the host does not wait
ALLOCATES = ("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister",
             "cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease")  # fmt: skip


class Part(StrEnum):
    """What a lane does in a slice."""

    KERNELS = "kernels"
    BESIDE = "kernels beside copies"
    COPIES = "copies alone"
    HOST = "waits for the host"
    SYNC = "after a synchronization"
    MEMORY = "waits for an allocation"
    LAUNCH = "launch latency"
    END = "after the last kernel"
    PYTHON = "Python"
    OPERATORS = "torch's operators"
    CALLS = "calls of CUDA"
    WAITS = "waits for the GPU"


AT_WORK = frozenset({Part.KERNELS, Part.BESIDE, Part.COPIES})  # a profiler does not slow these


@dataclass(frozen=True)
class Slice:
    """A lane's part from `start_s` to `end_s`. `then`: of a gap of the GPU, what begins after it."""

    part: Part
    start_s: float
    end_s: float
    then: str = ""

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Lane:
    """A lane's slices, in order and without gaps. `streams`: of a GPU, each stream's work.

    `overlap_s`: seconds in which two streams or more work, each further one counted.
    """

    name: str
    slices: tuple[Slice, ...]
    streams: dict[int, tuple[Slice, ...]]
    overlap_s: float = 0.0

    @property
    def totals(self) -> dict[Part, float]:
        """Seconds of each part, in the order of `Part`. They add up to the profiled call."""
        sums = {part: sum(piece.seconds for piece in self.slices if piece.part == part) for part in Part}
        return {part: total for part, total in sums.items() if total}

    def measured(self, call_s: float) -> dict[Part, float]:
        """The same of a call without the profiler: they add up to `call_s`.

        Work of the GPU keeps its time, waits shrink in proportion: the profiler slows the host. Everything shrinks in
        proportion where the GPU's work alone took longer than `call_s`, and on a CPU.
        """
        totals = self.totals
        fixed = sum(total for part, total in totals.items() if part in AT_WORK)
        waits = sum(totals.values()) - fixed
        if fixed > call_s or not waits:
            fixed, waits = 0.0, fixed + waits
        factor = (call_s - fixed) / waits
        return {part: total if part in AT_WORK and fixed else factor * total for part, total in totals.items()}


def lanes(profile: Profile) -> list[Lane]:
    """The CPU's lane, and the GPU's if the call used one."""
    end = 1e6 * profile.about.profiled_s
    work = spans(profile.traceEvents, "kernel", "gpu_memcpy", "gpu_memset")
    return [_cpu_lane(profile.traceEvents, end), *([_gpu_lane(profile.traceEvents, work, end)] if work else [])]


def _cpu_lane(events: Sequence[Event], end: float) -> Lane:
    """What the host does: of several threads the one at work counts, of nested events the innermost."""
    operators, calls, waits = list[Interval](), list[Interval](), list[Interval]()
    for thread in {event.tid for event in events if event.pid == 0}:
        own = [event for event in events if (event.pid, event.tid) == (0, thread)]
        runtime = spans(own, "cuda_runtime", "cuda_driver")
        waiting = union(_interval(event) for event in runtime if is_wait(event))
        calling = subtract(union(_interval(event) for event in runtime), waiting)
        operators += subtract(union(map(_interval, spans(own, "cpu_op"))), union([*waiting, *calling]))
        calls, waits = calls + calling, waits + waiting
    calls = union(calls)
    operators = subtract(union(operators), calls)
    waits = subtract(union(waits), union([*calls, *operators]))
    python = subtract([(0.0, end)], union([*calls, *operators, *waits]))
    parts = {Part.PYTHON: python, Part.OPERATORS: operators, Part.CALLS: calls, Part.WAITS: waits}
    return Lane("CPU", _slices((part, piece, "") for part, pieces in parts.items() for piece in pieces), {})


def _gpu_lane(events: Sequence[Event], work: Sequence[Event], end: float) -> Lane:
    kernels = union(_interval(event) for event in work if event.cat == "kernel")
    copies = union(_interval(event) for event in work if event.cat != "kernel")
    busy = union([*kernels, *copies])
    alone = subtract(kernels, copies)
    pieces = [(Part.KERNELS, piece, "") for piece in alone]
    pieces += [(Part.BESIDE, piece, "") for piece in subtract(kernels, alone)]
    pieces += [(Part.COPIES, piece, "") for piece in subtract(copies, kernels)]
    pieces += _gaps(events, work, subtract([(0.0, end)], busy))
    streams = {number: _stream(work, number) for number in sorted({event.tid for event in work})}
    overlap_s = sum(piece.seconds for own in streams.values() for piece in own) - 1e-6 * length(busy)
    return Lane("GPU", _slices(pieces), streams, max(overlap_s, 0.0) if len(streams) > 1 else 0.0)


def _stream(work: Iterable[Event], number: int) -> tuple[Slice, ...]:
    """A stream's kernels and copies."""
    own = [event for event in work if event.tid == number]
    kernels = union(_interval(event) for event in own if event.cat == "kernel")
    copies = subtract(union(_interval(event) for event in own if event.cat != "kernel"), kernels)
    return _slices([(Part.KERNELS, piece, "") for piece in kernels] + [(Part.COPIES, piece, "") for piece in copies])


def _gaps(events: Sequence[Event], work: Sequence[Event], gaps: Iterable[Interval]) -> list[Piece]:
    """Why the GPU is idle in each gap: until the next launch has been issued, and from there until it begins."""
    runtime = spans(events, "cuda_runtime", "cuda_driver")
    launches = {call.args["correlation"]: call for call in runtime if "correlation" in call.args}
    last_done = list(accumulate(work, _later))
    pieces = list[Piece]()
    for begin, end in gaps:
        place = bisect_left(work, end, key=lambda event: event.ts)
        if place == len(work):
            pieces.append((Part.END, (begin, end), ""))
            continue
        launch = launches.get(work[place].args.get("correlation"))
        before = launches.get(last_done[place - 1].args.get("correlation")) if place else None
        issued = min(max(launch.end, begin), end) if launch else begin
        first, last = (
            bisect_left(runtime, time, key=lambda call: call.ts)
            for time in (before.end if before else 0.0, launch.ts if launch else 0.0)
        )
        reason = _reason([call for call in runtime[first:last] if begin < call.end <= end])
        halves = [(reason, (begin, issued), work[place].name), (Part.LAUNCH, (issued, end), work[place].name)]
        pieces += [half for half in halves if length([half[1]]) > 0]
    return pieces


def _later(one: Event, other: Event) -> Event:
    """Of two, the one that ends later."""
    return other if other.end >= one.end else one


def _reason(calls: Sequence[Event]) -> Part:
    """Why a launch came late: what the host did since the launch before, in calls that ended when the GPU was idle."""
    if any(map(is_wait, calls)):
        return Part.SYNC
    return Part.MEMORY if any(call.name.startswith(ALLOCATES) for call in calls) else Part.HOST


def is_wait(call: Event) -> bool:
    """Whether a call of CUDA returns only when the GPU has done its work."""
    return "Synchronize" in call.name or (call.name.startswith(COPIES) and "Async" not in call.name)


def _slices(pieces: Iterable[Piece]) -> tuple[Slice, ...]:
    ordered = sorted(pieces, key=lambda piece: piece[1])
    return tuple(Slice(part, 1e-6 * begin, 1e-6 * end, then) for part, (begin, end), then in ordered)


def _interval(event: Event) -> Interval:
    return event.ts, event.end


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """In order, without overlaps and empty ones."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif end > begin:
            merged.append((begin, end))
    return merged


def subtract(intervals: Iterable[Interval], others: Sequence[Interval]) -> list[Interval]:
    """What of `intervals` no other covers; both are unions."""
    left, ends = [], [end for _, end in others]
    for begin, end in intervals:
        place = bisect_left(ends, begin)
        while place < len(others) and others[place][0] < end:
            if others[place][0] > begin:
                left.append((begin, others[place][0]))
            begin = max(begin, others[place][1])
            place += 1
        if end > begin:
            left.append((begin, end))
    return left


def length(intervals: Iterable[Interval]) -> float:
    return sum(end - begin for begin, end in intervals)
