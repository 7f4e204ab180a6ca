"""Calls of independently known length, timed with the harness's clocks: spins, repetitions, reads.

They run in their own process, because they need CUDA. A spin's length comes from clocks that the harness does not use.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from common.engine.job import Job
from common.machine.clock import Clock, DeviceClock, WallClock, host_seconds
from common.machine.device import use_device
from common.machine.throttling import clocks_now
from common.pairs.pair import load
from tools.calibration.findings import KnownTimes, Spin

SPINS = {  # seconds -> samples: from the length of batches, or what events resolve well, up to a slow call
    "cpu": {1e-3: 50, 10e-3: 30, 100e-3: 10},
    "cuda": {200e-6: 50, 2e-3: 30, 20e-3: 10},
}
SAMPLES = 50  # of all others
MANY = 200  # repetitions
ROW = 4096  # float32 values: a row long enough for its latency to matter
SPIN_KERNEL = r"""
extern "C" __global__ void spin(long long cycles, long long* took) {
    long long begin_ns, end_ns, begin = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns));
    while (clock64() - begin < cycles);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end_ns));
    took[0] = clock64() - begin;
    took[1] = end_ns - begin_ns;
}
"""


def measure_known_times(job: Job, say: Callable[[str, float], None]) -> KnownTimes:
    """Measure everything. `job`: of the pair `work`, whose baseline is called here with other repetitions."""
    use_device(job.device)
    say("known times", 0.0)
    if job.info["kind"] == "cpu":
        wall = WallClock(job.device)
        spins = [_spin_on_cpu(wall, *lengths) for lengths in SPINS["cpu"].items()]
        return KnownTimes(spins, *_time_repetitions(wall, job), MANY, [], [])
    import cupy  # only with a GPU

    use_device(job.device)  # also CuPy
    clock = DeviceClock(job.device)
    kernel = cupy.RawKernel(SPIN_KERNEL, "spin")
    spins = [_spin_on_gpu(clock, kernel, job, *lengths) for lengths in SPINS["cuda"].items()]
    return KnownTimes(spins, *_time_repetitions(clock, job), MANY, *_reads(clock, job))


def other_clock() -> tuple[str, Callable[[], int]]:
    """(Name, function returning nanoseconds) of a clock that WallClock does not use."""
    if hasattr(time, "CLOCK_MONOTONIC_RAW"):
        return "CLOCK_MONOTONIC_RAW", partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC_RAW)
    return "the system's clock", time.time_ns  # in Windows


def spin(length_ns: int, now_ns: Callable[[], int]) -> int:
    """Do nothing for `length_ns`. Returns the actual length, which the system may extend."""
    begin = now_ns()
    while (took := now_ns() - begin) < length_ns:
        pass
    return took


def _spin_on_cpu(clock: WallClock, nominal_s: float, times: int) -> Spin:
    name, now_ns = other_clock()
    samples = [clock.sample([partial(spin, int(nominal_s * 1e9), now_ns)]) for _ in range(times)]
    return Spin(nominal_s, {name: [s.outputs * 1e-9 for s in samples]}, [s.seconds for s in samples])


def _spin_on_gpu(clock: DeviceClock, kernel: Any, job: Job, nominal_s: float, times: int) -> Spin:
    """A spin's length by its cycles at the clock that the driver reports, and by the GPU's nanosecond timer."""
    took = torch.zeros(2, dtype=torch.int64, device=job.device)
    call = partial(kernel, (1,), (1,), (int(nominal_s * job.info["max_sm_mhz"] * 1e6), took.data_ptr()))
    host_s = host_seconds(call, job.device)
    read_s, cycles_s, timer_s = [], [], []
    for _ in range(times):
        read_s.append(clock.sample([call], host_s).seconds)
        cycles, timer_ns = took.tolist()
        call()  # again: the clock is queried while the GPU works
        cycles_s.append(cycles / (clocks_now(job.info["uuid"])["sm_mhz"] * 1e6))
        timer_s.append(timer_ns * 1e-9)
    return Spin(nominal_s, {"its cycles at the SM clock": cycles_s, "%globaltimer": timer_s}, read_s)


def _time_repetitions(clock: Clock, job: Job) -> tuple[list[float], list[float]]:
    """Seconds of the pair's baseline with one repetition and with many, in turns."""
    version = load(job.pair.baseline.path)
    inputs = version.inputs(**job.pair.sizes[job.size], device=job.device)
    call = partial(version.run, **inputs, **version.setup(**inputs))
    seconds: dict[int, list[float]] = {1: [], MANY: []}
    for _ in range(SAMPLES):
        for count, samples in seconds.items():
            vars(version)["REPETITIONS"] = count
            host_s = host_seconds(call, job.device, times=1)
            samples.append(clock.sample([call], host_s).seconds)
    return seconds[1], seconds[MANY]


def _reads(clock: DeviceClock, job: Job) -> tuple[list[float], list[float]]:
    """Sums over a third of L2, so that the rows fit in each half of an L2 with two halves."""
    rows = torch.rand(job.info["cache_bytes"] // 3 // (4 * ROW), ROW, device=job.device)
    sums = torch.empty(len(rows), device=job.device)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    read = partial(torch.sum, rows, dim=1, out=sums)

    def read_twice() -> None:
        read()
        start.record()
        read()
        stop.record()

    cold_s, warm_s = [], []
    for _ in range(SAMPLES):
        cold_s.append(clock.sample([read], host_seconds(read, job.device)).seconds)
        clock.sample([read_twice], host_seconds(read_twice, job.device))
        warm_s.append(start.elapsed_time(stop) * 1e-3)
    return cold_s, warm_s
