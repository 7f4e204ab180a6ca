"""One untimed call as the profiler sees it: what the device did outside of the timed interval, and memory allocated.

The last look at an arm, because the profiler slows every later launch. Two markers on the current stream stand where
the clock's events stand; before the first the device is kept busy, so that work that waits for nobody shows.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch.autograd.profiler import profile

from common.machine.clock import synchronize

MARKER = "spin_kernel"  # torch.cuda._sleep
BUSY_CYCLES = 40_000_000  # about 20 ms: more than a slow host, profiled, needs to issue what is told from late work
SLACK_NS = 1_000  # by which a kernel may seem to overlap the marker


@dataclass(frozen=True)
class Seen:
    """`outside`: what was done outside of the timed interval, in words; empty if nothing; None if it is not known.

    `peak_bytes`: the most that was in use at once, beyond what was before; CuPy's memory is counted as never freed.
    """

    outside: str | None
    allocated_bytes: int
    peak_bytes: int


def look(call: Callable[[], Any], device: str, timed_by_events: bool) -> Seen:
    """Make a warm call and see what it does; its device work, too, if that is `timed_by_events`."""
    if torch.device(device).type == "cuda":
        before, held = _allocated(device), torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        with _cupy_memory() as taken:
            outside = _outside(_device_work(call, device)) if timed_by_events else ""
            if not timed_by_events:
                call()
            synchronize(device)
        peak = torch.cuda.max_memory_allocated(device) - held
        return Seen(outside, _allocated(device) - before + sum(taken), peak + sum(taken))
    with profile(profile_memory=True, use_kineto=True) as profiler:
        kept = call()
    del kept
    events = [event for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]  # below 0: freed
    return Seen("", sum(size for size in sizes if size > 0), max(accumulate(sizes, initial=0)))


def _allocated(device: str) -> int:
    """Bytes that torch has ever handed out on a device."""
    return int(torch.cuda.memory_stats(device)["allocated_bytes.all.allocated"])


def _device_work(call: Callable[[], Any], device: str) -> list[Any]:
    """All that the device did between and around the markers, as the profiler recorded it."""
    with profile(use_device="cuda", use_kineto=True) as profiler:
        torch.cuda._sleep(BUSY_CYCLES)
        call()
        torch.cuda._sleep(1)
        synchronize(device)
    events = profiler.kineto_results.events()
    return [event for event in events if event.device_type() == torch.autograd.DeviceType.CUDA]


def _outside(work: list[Any]) -> str | None:
    """Device work that begins before the first marker ends, or ends after the last begins; None if none was recorded.

    (Another profiler, or a container without the right to trace, keeps ours from seeing the device.)
    """
    markers = sorted((event.start_ns(), event.end_ns()) for event in work if MARKER in event.name())
    if len(markers) < 2:
        return None
    for event in (event for event in work if MARKER not in event.name()):
        if event.start_ns() < markers[0][1] - SLACK_NS:
            return f"device work outside the timed interval: {event.name():.60} waits for nothing on the timed stream"
        if event.end_ns() > markers[-1][0] + SLACK_NS:
            return f"device work outside the timed interval: {event.name():.60} is on a stream that is not joined"
    return ""


@contextmanager
def _cupy_memory() -> Iterator[list[int]]:
    """The sizes of what CuPy allocates inside."""
    sizes: list[int] = []
    cupy: Any = sys.modules.get("cupy") if torch.cuda.is_initialized() else None
    if cupy is None:
        yield sizes
        return

    class Hook(cupy.cuda.MemoryHook):
        name = "sizes"

        def malloc_postprocess(self, **what: Any) -> None:
            sizes.append(what["mem_size"])

    with Hook():
        yield sizes
