"""One untimed call under the profiler: device work outside of the timed interval, and memory allocated.

This is an arm's last check, because the profiler slows every later launch. Two markers on the current stream are at the
places of the clock's events. The device is kept busy before the first one, so work that does not wait becomes visible.
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
BUSY_CYCLES = 40_000_000  # about 20 ms: more than a slow profiled host needs to issue the call
SLACK_NS = 1_000  # a kernel may seem to overlap the marker by this much


@dataclass(frozen=True)
class Seen:
    """The findings. `outside`: device work outside of the timed interval, in words; empty if none; None if unknown.

    `peak_bytes`: the most memory in use at once, beyond that before; CuPy's memory is counted as never freed.
    """

    outside: str | None
    allocated_bytes: int
    peak_bytes: int


def look(call: Callable[[], Any], device: str, timed_by_events: bool) -> Seen:
    """Make a warm call and examine it; also its device work if `timed_by_events`."""
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
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]  # negative: freed
    return Seen("", sum(size for size in sizes if size > 0), max(accumulate(sizes, initial=0)))


def _allocated(device: str) -> int:
    """Bytes that torch has allocated on a device in total."""
    return int(torch.cuda.memory_stats(device)["allocated_bytes.all.allocated"])


def _device_work(call: Callable[[], Any], device: str) -> list[Any]:
    """All device work between and around the markers, as recorded by the profiler."""
    with profile(use_device="cuda", use_kineto=True) as profiler:
        torch.cuda._sleep(BUSY_CYCLES)
        call()
        torch.cuda._sleep(1)
        synchronize(device)
    events = profiler.kineto_results.events()
    return [event for event in events if event.device_type() == torch.autograd.DeviceType.CUDA]


def _outside(work: list[Any]) -> str | None:
    """Device work that begins before the first marker ends, or ends after the last begins; None if none was recorded.

    (Another profiler, or a container without permission to trace, can hide the device from ours.)
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
    """The sizes of CuPy's allocations inside."""
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
