"""One untimed call under the profiler: device work outside of the timed interval, its kernels, memory allocated.

This is a candidate's last check, because the profiler slows every later launch. Two markers on the current stream are
at the places of the clock's events. The device is kept busy before the first one, so work that does not wait becomes
visible.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch.autograd.profiler import profile

from common.checks.kernel_facts import kernels_of, launched_binaries
from common.machine.clock import synchronize
from common.record.outcome import Cause, Finding

MARKER = "spin_kernel"  # torch.cuda._sleep
BUSY_CYCLES = 40_000_000  # about 20 ms: more than a slow profiled host needs to issue the call
SLACK_NS = 1_000  # a kernel may seem to overlap the marker by this much


@dataclass(frozen=True)
class CallTrace:
    """The findings. `outside`: device work outside of the timed interval. `is_known`: whether the profiler saw any.

    `peak_bytes`: the most memory in use at once, beyond that before; CuPy's memory is counted as never freed.
    `kernels`: launched by the call on a GPU; see form.Kernel.
    """

    outside: Finding | None
    allocated_bytes: int
    peak_bytes: int
    is_known: bool = True
    kernels: list[dict[str, Any]] = field(default_factory=list)


def trace_call(call: Callable[[], Any], device: str, timed_by_events: bool) -> CallTrace:
    """Make a warm call and examine it; also its device work if `timed_by_events`."""
    if torch.device(device).type == "cuda":
        before, bytes_before = _allocated(device), torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        with _cupy_memory() as cupy_sizes:
            work, kernels = _device_work(call, device)
        peak = torch.cuda.max_memory_allocated(device) - bytes_before
        allocated = _allocated(device) - before + sum(cupy_sizes), peak + sum(cupy_sizes)
        outside, is_known = _outside(work) if timed_by_events else (None, True)
        return CallTrace(outside, *allocated, is_known, kernels)
    with profile(profile_memory=True, use_kineto=True) as profiler:
        answer = call()
    del answer
    events = [event for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]  # negative: freed
    return CallTrace(None, sum(size for size in sizes if size > 0), max(accumulate(sizes, initial=0)))


def _allocated(device: str) -> int:
    """Bytes that torch has allocated on a device in total."""
    return int(torch.cuda.memory_stats(device)["allocated_bytes.all.allocated"])


def _device_work(call: Callable[[], Any], device: str) -> tuple[list[Any], list[dict[str, Any]]]:
    """All device work between and around the markers, as recorded by the profiler; the call's kernels."""
    with profile(use_device="cuda", use_kineto=True) as profiler, launched_binaries() as binaries:
        torch.cuda._sleep(BUSY_CYCLES)
        call()
        torch.cuda._sleep(1)
        synchronize(device)
    events = profiler.kineto_results.events()
    work = [event for event in events if event.device_type() == torch.autograd.DeviceType.CUDA]
    return work, kernels_of(profiler, binaries, without=MARKER)


def _outside(work: list[Any]) -> tuple[Finding | None, bool]:
    """(Device work that begins before the first marker ends, or ends after the last begins; whether any was recorded.)

    (Another profiler, or a container without permission to trace, can hide the device from ours.)
    """
    markers = sorted((event.start_ns(), event.end_ns()) for event in work if MARKER in event.name())
    if len(markers) < 2:
        return None, False
    for event in (event for event in work if MARKER not in event.name()):
        if event.start_ns() < markers[0][1] - SLACK_NS:
            how = "waits for nothing on the timed stream"
        elif event.end_ns() > markers[-1][0] + SLACK_NS:
            how = "is on a stream that is not joined"
        else:
            continue
        return Finding(Cause.OUTSIDE_INTERVAL, {"kernel": event.name()[:60], "how": how}), True
    return None, True


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

        def malloc_postprocess(self, **block: Any) -> None:
            sizes.append(block["mem_size"])

    with Hook():
        yield sizes
