"""One sample: how long a call took, on the device's clock or on the wall's.

The clocks are bound when this module is imported, before any pair is: a pair that replaces them fools itself only.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

now = time.perf_counter
_cpu_time = time.process_time
_Event = torch.cuda.Event
_record, _query, _wait, _elapsed_ms = _Event.record, _Event.query, _Event.synchronize, _Event.elapsed_time
_sum = torch.sum
_synchronize = torch.cuda.synchronize
LEAST_WALL_S = {"cuda": 200e-6, "cpu": 1e-3}  # shorter calls are batched up to this; on a CPU malloc's state is noise
LEAST_FLUSH_S = 200e-6  # a host that others share takes for once far longer than it usually does
LONGEST_FLUSH_S = 20e-3  # a call that takes the host longer to issue is timed with the waiting, and labelled so
Call = Callable[[], Any]
Look = Callable[[Any], Any]  # at what a call has returned, as soon as the clock has stopped


def synchronize(device: str) -> None:
    """Wait until the device has done all it was given; on a CPU nothing is ever pending."""
    if torch.device(device).type == "cuda":
        _synchronize(device)


@dataclass(frozen=True)
class Sample:
    """Seconds of a call. `host_s`: until it returned. `tail_s`: from the clock's stop until the device was idle.

    `idle_s`: what waiting costs where nothing is left to wait for. `cores`: how many of them this process kept busy
    meanwhile. `waited`: the device may have waited for the host, and the seconds be the host's. `seen`: what a look at
    the outputs has found.
    """

    seconds: float
    host_s: float
    tail_s: float
    cores: float
    outputs: Any
    waited: bool = False
    seen: Any = None
    idle_s: float = 0.0


def _no_look(outputs: Any) -> None:
    return None


class WallClock:
    """Synchronize, call, synchronize."""

    name = "wall"

    def __init__(self, device: str) -> None:
        self._device = device

    def sample(self, calls: list[Call], host_s: float = 0.0, after: int = 0, look: Look = _no_look) -> Sample:
        """Mean seconds of the calls, one after the other.

        The clock stops for a look at the answer of one of them, after which come `after` more.
        """
        first, rest = calls[: len(calls) - after], calls[len(calls) - after :]
        outputs, *spent = self._time(first)
        seen = look(outputs)
        if rest:
            spent = [a + b for a, b in zip(spent, self._time(rest)[1:], strict=True)]
        seconds, host_s, busy_s = spent
        return Sample(seconds / len(calls), host_s / len(calls), 0.0, busy_s / seconds, outputs, seen=seen)

    def _time(self, calls: list[Call]) -> tuple[Any, float, float, float]:
        """What the last of them has returned; seconds until all were done, until they had returned, of all cores."""
        synchronize(self._device)
        busy, start = _cpu_time(), now()
        for call in calls[:-1]:
            call()
        outputs = calls[-1]()
        returned = now()
        synchronize(self._device)
        stop = now()
        return outputs, stop - start, returned - start, _cpu_time() - busy


class DeviceClock:
    """Time between two CUDA events around one call, with a cold L2 and a device that never waits for the host.

    Before the call the device reads a buffer of twice its L2, as often as it takes to be busy for longer than the host
    needs to issue the call; reading, because the dirty lines of a written buffer would be evicted on the call's time.
    Each of these reads the host has to issue as well: what one gains is its own time less that.
    """

    name = "device"

    def __init__(self, device: str) -> None:
        self._device = device
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

    def sample(self, calls: list[Call], host_s: float = 0.0, after: int = 0, look: Look = _no_look) -> Sample:
        """Device seconds of one call that is expected to take the host `host_s` to issue."""
        (call,) = calls
        _synchronize(self._device)
        self._flush(2 + int((LEAST_FLUSH_S + 1.5 * min(host_s, LONGEST_FLUSH_S)) / self._gain_s))
        _record(self._start)
        start = now()
        outputs = call()
        returned = now()
        _record(self._stop)
        waited = _query(self._start)  # the device began before it had been given all
        _wait(self._stop)
        stopped = now()
        _synchronize(self._device)
        idle = now()
        _synchronize(self._device)
        idle_s, seconds = now() - idle, _elapsed_ms(self._start, self._stop) * 1e-3
        return Sample(seconds, returned - start, idle - stopped, 1.0, outputs, waited, look(outputs), idle_s)


Clock = WallClock | DeviceClock


def make_clock(name: str, device: str) -> Clock:
    return DeviceClock(device) if name == "device" else WallClock(device)


def host_seconds(call: Call, device: str, times: int = 3) -> float:
    """Median time until a warm call returns while the device is idle: what the host needs to issue it."""
    samples = []
    for _ in range(times):
        synchronize(device)
        start = now()
        call()
        samples.append(now() - start)
    return sorted(samples)[times // 2]
