"""One sample: the time of a call, on the device's clock or on the wall clock.

The clock functions are bound when this module is imported, before any pair: a pair that replaces them has no effect.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

now = time.perf_counter
_cpu_time = time.process_time
_Event = torch.cuda.Event
_record, _query, _wait, _elapsed_ms = _Event.record, _Event.query, _Event.synchronize, _Event.elapsed_time
_sum = torch.sum
_synchronize = torch.cuda.synchronize
LEAST_WALL_S = {"cuda": 200e-6, "cpu": 1e-3}  # shorter calls are batched up to this; on a CPU malloc's state is noise
LEAST_FLUSH_S = 200e-6  # on a shared host one call may take far longer than usual
LONGEST_FLUSH_S = 20e-3  # if issuing takes longer, the time includes the waiting, and a note says so
Call = Callable[[], Any]
Barrier = Callable[[str], None]  # called right before the start: a barrier, in a group of processes
Inspect = Callable[[Any], Any]  # examines what a call returned, as soon as the clock has stopped


def synchronize(device: str) -> None:
    """Wait until the device has finished all its work; on a CPU nothing is ever pending."""
    if torch.device(device).type == "cuda":
        _synchronize(device)


@dataclass(frozen=True)
class Sample:
    """One sample, in seconds.

    `seconds`: of the call. `host_s`: until the call returned. `tail_s`: from the clock's stop until the device was
    idle. `idle_s`: the cost of a synchronization without pending work. `cores`: how many cores this process kept busy.
    `device_waited`: the device may have waited for the host, so `seconds` may be the host's time. `inspection`: what
    `inspect` returned. `by_rank`: in a group of processes, the seconds of each; `seconds` is the largest.
    """

    seconds: float
    host_s: float
    tail_s: float
    cores: float
    outputs: Any
    device_waited: bool = False
    inspection: Any = None
    idle_s: float = 0.0
    by_rank: tuple[float, ...] = ()


def _no_barrier(device: str) -> None:
    pass


def _no_inspection(outputs: Any) -> None:
    return None


class WallClock:
    """The wall clock: synchronize, call, synchronize."""

    name = "wall"

    def __init__(self, device: str, barrier: Barrier = _no_barrier) -> None:
        self._device, self._barrier = device, barrier

    def sample(
        self, calls: list[Call], host_s: float = 0.0, calls_after: int = 0, inspect: Inspect = _no_inspection
    ) -> Sample:
        """Mean seconds of the calls, made one after the other.

        The clock stops while `inspect` examines the answer of one call; `calls_after` further calls follow it.
        """
        first, rest = calls[: len(calls) - calls_after], calls[len(calls) - calls_after :]
        outputs, *durations = self._time(first)
        inspection = inspect(outputs)
        if rest:
            durations = [a + b for a, b in zip(durations, self._time(rest)[1:], strict=True)]
        seconds, host_s, busy_s = durations
        return Sample(seconds / len(calls), host_s / len(calls), 0.0, busy_s / seconds, outputs, inspection=inspection)

    def _time(self, calls: list[Call]) -> tuple[Any, float, float, float]:
        """(The last call's answer, seconds until all were done, seconds until all had returned, CPU seconds.)"""
        synchronize(self._device)
        self._barrier(self._device)
        synchronize(self._device)
        cpu_start, start = _cpu_time(), now()
        for call in calls[:-1]:
            call()
        outputs = calls[-1]()
        returned = now()
        synchronize(self._device)
        stop = now()
        return outputs, stop - start, returned - start, _cpu_time() - cpu_start


class DeviceClock:
    """Time between two CUDA events around one call, with a cold L2 and a device that does not wait for the host.

    Before the call the device reads a buffer of twice its L2, as often as needed to stay busy until the host has issued
    the call. It reads because dirty lines of a written buffer would be evicted during the call. The host issues these
    reads, too: each one gains the read's own time less the time to issue it.
    """

    name = "device"

    def __init__(self, device: str, barrier: Barrier = _no_barrier) -> None:
        self._device, self._barrier = device, barrier
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self._flushed = torch.zeros(max(2 * l2, 32 << 20) // 4, device=device)
        self._sum = torch.zeros((), device=device)
        self._start, self._stop = _Event(enable_timing=True), _Event(enable_timing=True)
        self._flush(2)
        _synchronize(device)
        begin = now()
        self._flush(20)
        issued = now()
        _synchronize(device)
        flush_s = (now() - begin) / 20
        self._gain_s = max(flush_s - (issued - begin) / 20, flush_s / 4)

    def _flush(self, times: int) -> None:
        for _ in range(times):
            _sum(self._flushed, dim=0, out=self._sum)

    def sample(
        self, calls: list[Call], host_s: float = 0.0, calls_after: int = 0, inspect: Inspect = _no_inspection
    ) -> Sample:
        """Device seconds of one call that the host is expected to need `host_s` to issue."""
        (call,) = calls
        _synchronize(self._device)
        self._flush(2 + int((LEAST_FLUSH_S + 1.5 * min(host_s, LONGEST_FLUSH_S)) / self._gain_s))
        self._barrier(self._device)
        _record(self._start)
        start = now()
        outputs = call()
        returned = now()
        _record(self._stop)
        device_waited = _query(self._start)  # the device began before everything was issued
        _wait(self._stop)
        stopped = now()
        _synchronize(self._device)
        idle = now()
        _synchronize(self._device)
        idle_s, seconds = now() - idle, _elapsed_ms(self._start, self._stop) * 1e-3
        return Sample(seconds, returned - start, idle - stopped, 1.0, outputs, device_waited, inspect(outputs), idle_s)


class GroupClock:
    """A clock whose samples begin together in a group of processes, and are the largest of their times.

    `share` returns the values of all processes.
    """

    def __init__(self, clock: "WallClock | DeviceClock", share: Callable[[Any, str], list[Any]]) -> None:
        self.name, self._clock, self._share = clock.name, clock, share

    def sample(
        self, calls: list[Call], host_s: float = 0.0, calls_after: int = 0, inspect: Inspect = _no_inspection
    ) -> Sample:
        """One sample, the same in all processes, except for the answer."""
        sample = self._clock.sample(calls, host_s, calls_after, inspect)
        names = ("seconds", "host_s", "tail_s", "cores", "idle_s", "device_waited")
        rank_values = list(zip(*self._share([getattr(sample, name) for name in names], "sample"), strict=True))
        return replace(sample, **dict(zip(names, map(max, rank_values), strict=True)), by_rank=rank_values[0])


Clock = WallClock | DeviceClock | GroupClock


def make_clock(name: str, device: str, barrier: Barrier = _no_barrier) -> WallClock | DeviceClock:
    return DeviceClock(device, barrier) if name == "device" else WallClock(device, barrier)


def host_seconds(call: Call, device: str, times: int = 3) -> float:
    """Median seconds until a warm call returns on an idle device: what the host needs to issue it."""
    samples = []
    for _ in range(times):
        synchronize(device)
        start = now()
        call()
        samples.append(now() - start)
    return sorted(samples)[times // 2]
