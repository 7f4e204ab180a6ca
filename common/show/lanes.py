"""Where a call's time goes: lanes of the CPU and the GPU, cut into slices that cover the call, so that they add up.

A gap of the GPU is named by what the host did when the GPU was idle: the next launch was not issued yet, because the
host was slow, waited for the GPU, or asked for memory; or it was, and the GPU began late.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from common.record.profile_file import Event, Profile, outermost, spans

RUNTIME = ("cuda_runtime", "cuda_driver")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
COPIES = ("cudaMemcpy", "cuMemcpy")  # where "Async" follows, the host does not wait
ALLOCATES = ("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister",
             "cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease")  # fmt: skip
BACKWARD = "autograd::engine::evaluate_function: "  # before the names of a backward pass's operators
QUEUE = 800  # launches on their way: with about a thousand the driver lets the next one wait


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


WORK = (None, Part.KERNELS, Part.COPIES, Part.BESIDE)  # of the GPU: kernels are 1, copies 2, both 3
ON_HOST = (Part.PYTHON, Part.WAITS, Part.OPERATORS, Part.CALLS)  # of several threads the last counts


@dataclass(frozen=True)
class Slice:
    """A lane's part from `start_s` to `end_s`. `then`: what follows a gap of the GPU, or of torch on the CPU."""

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
    slices: Sequence[Slice]
    streams: dict[int, list[Slice]]
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
        work = {part: total for part, total in totals.items() if part in WORK}
        rest_s, waits_s = call_s - sum(work.values()), sum(totals.values()) - sum(work.values())
        if rest_s < 0 or not waits_s:
            return {part: total * call_s / sum(totals.values()) for part, total in totals.items()}
        return {part: total * rest_s / waits_s for part, total in totals.items()} | work

    @property
    def gaps(self) -> list[Slice]:
        """What is idle before further work, the longest first."""
        return sorted((piece for piece in self.slices if piece.then), key=lambda piece: -piece.seconds)


def lanes(profile: Profile) -> list[Lane]:
    """The CPU's lane, and the GPU's if the call used one."""
    host, work = spans(profile.traceEvents, *RUNTIME, "cpu_op"), spans(profile.traceEvents, *ON_GPU)
    end = 1e6 * profile.about.profiled_s
    cuts = np.unique([0.0, end, *(min(time, end) for event in [*host, *work] for time in (event.ts, event.end))])
    on_host, full = _paint(cuts, []), _behind_a_full_queue(host, work)
    for thread in {event.tid for event in host}:  # in one thread calls cover operators, and waits both
        own = [(1 if id(event) in full else _host_part(event), event) for event in host if event.tid == thread]
        on_host = np.maximum(on_host, _paint(cuts, sorted(own, key=lambda item: (item[0] - 2) % 3)))
    then = {1e-6 * event.ts: _label(event) for event in reversed(host)}  # of those that begin together the outer one
    runs = _runs(cuts, on_host)
    on_cpu = [Slice(ON_HOST[code], begin, until, "" if code else then.get(until, "")) for code, begin, until in runs]
    cpu = Lane("CPU", on_cpu, {})
    if not work:
        return [cpu]
    pieces, idle = _at_work(cuts, work)
    streams = {event.tid: list[Slice]() for event in sorted(work, key=lambda event: event.tid)}
    for stream in streams:
        streams[stream] = _at_work(cuts, [event for event in work if event.tid == stream])[0]
    overlap_s = sum(map(_total, streams.values())) - _total(pieces)
    gaps = _gaps(spans(profile.traceEvents, *RUNTIME), work, idle)
    slices = sorted([*pieces, *gaps], key=lambda piece: piece.start_s)
    return [cpu, Lane("GPU", slices, streams, max(0.0, overlap_s) * (len(streams) > 1))]


def _paint(cuts: Any, events: Iterable[tuple[int, Event]]) -> Any:
    """Between each two cuts the code of the last event there, else 0."""
    codes = np.zeros(len(cuts) - 1, dtype=int)
    for code, event in events:
        codes[np.searchsorted(cuts, event.ts) : np.searchsorted(cuts, event.end)] = code
    return codes


def _runs(cuts: Any, codes: Any) -> Iterator[tuple[int, float, float]]:
    """(Code, begin and end in seconds) of each stretch of one code."""
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    for begin, end in zip(begins, [*begins[1:], len(codes)], strict=True):
        yield int(codes[begin]), 1e-6 * float(cuts[begin]), 1e-6 * float(cuts[end])


def _at_work(cuts: Any, work: Sequence[Event]) -> tuple[list[Slice], list[tuple[float, float]]]:
    """What works, and when nothing does."""
    kernels, copies = ([(code, one) for one in work if (one.cat == "kernel") == (code == 1)] for code in (1, 2))
    runs = list(_runs(cuts, _paint(cuts, kernels) + _paint(cuts, copies)))
    at_work = [Slice(part, begin, end) for code, begin, end in runs if (part := WORK[code])]
    return at_work, [(begin, end) for code, begin, end in runs if not code]


def _total(pieces: Iterable[Slice]) -> float:
    return sum(piece.seconds for piece in pieces)


def _behind_a_full_queue(host: Sequence[Event], work: Sequence[Event]) -> set[int]:
    """The identities of calls that add to a full queue: they return when the GPU has ended something in it."""
    ends, added = sorted(event.end for event in work), {event.args.get("correlation") for event in work}
    calls = [event for event in host if event.cat in RUNTIME and event.args.get("correlation") in added]
    in_order = enumerate(sorted(calls, key=lambda call: call.ts))
    return {id(call) for number, call in in_order if number - bisect_right(ends, call.ts) >= QUEUE}


def _host_part(event: Event) -> int:
    """Its place in ON_HOST."""
    return 2 if event.cat == "cpu_op" else 1 if is_wait(event) else 3


def _gaps(calls: Sequence[Event], work: Sequence[Event], idle: Iterable[tuple[float, float]]) -> Iterator[Slice]:
    """Why the GPU is idle in each gap: until the next launch has been issued, and from there until it begins."""
    launches = {call.args["correlation"]: call for call in calls if "correlation" in call.args}
    ended = sorted(calls, key=lambda call: call.end)
    for begin, end in idle:
        place = bisect_left(work, end - 1e-12, key=lambda event: 1e-6 * event.ts)
        if place == len(work):
            yield Slice(Part.END, begin, end)
            continue
        launch = launches.get(work[place].args.get("correlation"))
        issued = min(max(1e-6 * launch.end, begin), end) if launch else begin
        first, last = (bisect_right(ended, time, key=lambda call: 1e-6 * call.end) for time in (begin, issued))
        reason = _reason([call for call in ended[first:last] if call is not launch])
        halves = (reason, begin, issued), (Part.LAUNCH, issued, end)
        yield from (Slice(*half, work[place].name) for half in halves if half[2] > half[1])


def _reason(calls: Sequence[Event]) -> Part:
    """Why a launch came late: what the host did, in calls that ended when the GPU was idle."""
    if any(map(is_wait, calls)):
        return Part.SYNC
    return Part.MEMORY if any(call.name.startswith(ALLOCATES) for call in calls) else Part.HOST


def is_wait(call: Event) -> bool:
    """Whether a call of CUDA returns only when the GPU has done its work."""
    return "Synchronize" in call.name or (call.name.startswith(COPIES) and "Async" not in call.name)


def _label(event: Event) -> str:
    """An event's name, as a reader knows it."""
    name = event.name.removeprefix(BACKWARD)
    return name.partition("#")[0] if event.cat == "user_annotation" else name  # Optimizer.step#AdamW.step


def costliest(profile: Profile) -> list[tuple[str, list[Event]]]:
    """The names of what works, each with its events, the longest in all first: on the GPU, else on the host."""
    by_name = defaultdict[str, list[Event]](list)
    on_gpu = spans(profile.traceEvents, *ON_GPU)
    for event in on_gpu or outermost(profile.traceEvents, "cpu_op", "user_annotation"):
        by_name[_label(event)].append(event)
    return sorted(by_name.items(), key=lambda item: -sum(event.dur for event in item[1]))


def totals(profile: Profile) -> dict[str, tuple[int, float]]:
    """Name -> (calls, seconds) of annotations, and of operators that no other operator called; the longest first.

    Some contain others: an annotation those that run in it.
    """
    found = defaultdict[str, list[float]](list)
    for event in spans(profile.traceEvents, "user_annotation", "cpu_op", *ON_GPU):
        if not event.args.get("depth"):
            found[event.name].append(1e-6 * event.dur)
    of_all = {name: (len(times), sum(times)) for name, times in found.items()}
    return dict(sorted(of_all.items(), key=lambda item: -item[1][1]))
