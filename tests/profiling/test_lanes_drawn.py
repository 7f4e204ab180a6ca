"""Lanes of drawn traces, against a count of microseconds; calls of CUDA that wait, and those that do not."""

import random
from collections import Counter

import pytest

from common.record.profile_file import About, Event, Profile
from common.show.lanes import Part, is_wait, lanes

END = 200  # microseconds; all events begin and end at whole ones
WAIT, CALL = "cudaStreamSynchronize", "cudaLaunchKernel"
GAPS = (Part.HOST, Part.SYNC, Part.MEMORY, Part.LAUNCH, Part.END)


def drawn_trace(seed: int) -> list[Event]:
    """Work on three streams, as dense as the seed has it, each with a launch; nested operators on two threads."""
    draw = random.Random(seed)
    events = []
    for number in range(draw.randrange(1, 60)):
        begin = draw.randrange(END - 1)
        length = draw.randrange(1, min(25, END - begin) + 1)
        category = draw.choice(["kernel", "kernel", "gpu_memcpy", "gpu_memset"])
        arguments = {"correlation": number} if draw.random() < 0.9 else {}  # a profiler may miss a launch
        events.append(Event("work", "X", category, 1, draw.randrange(3), begin, length, args=arguments))
        start = draw.randrange(begin + 1)
        events.append(Event(draw.choice([CALL, WAIT, "cudaMalloc"]), "X", "cuda_runtime", 0, draw.choice([1, 2]),
                            start, draw.randrange(begin + 2 - start), args=arguments))  # fmt: skip
    for _ in range(draw.randrange(20)):
        begin = draw.randrange(END)
        events.append(Event("aten::add", "X", "cpu_op", 0, draw.choice([1, 2]), begin, draw.randrange(END - begin)))
    return events


def counted(events: list[Event]) -> Counter:
    """Microseconds of each part, looked at one by one; all gaps of the GPU count as "idle"."""
    parts = Counter()
    for moment in range(END):
        now = [event for event in events if event.ts <= moment < event.end]
        on_gpu = {"kernel" if event.cat == "kernel" else "copy" for event in now if event.pid}
        if on_gpu:
            both = len(on_gpu) == 2
            parts[Part.BESIDE if both else Part.KERNELS if "kernel" in on_gpu else Part.COPIES] += 1
        else:
            parts["idle"] += 1
        threads = set()
        for thread in {event.tid for event in now if not event.pid}:
            own = [event for event in now if not event.pid and event.tid == thread]
            calls = [event.name for event in own if event.cat == "cuda_runtime"]
            inner = Part.WAITS if WAIT in calls else Part.CALLS if calls else Part.OPERATORS
            threads.add(inner)
        first = next((part for part in (Part.CALLS, Part.OPERATORS, Part.WAITS) if part in threads), Part.PYTHON)
        parts[first] += 1
    return parts


@pytest.mark.parametrize("seed", range(60))
def test_the_parts_of_a_drawn_trace_are_its_microseconds_and_add_up(seed):
    events, call_s = drawn_trace(seed), random.Random(seed).uniform(1e-5, 4e-4)
    about = About("ch1", "x", "baseline", "default", {}, "", {}, call_s=call_s, profiled_s=1e-6 * END)
    drawn = lanes(Profile(about, events))
    found = Counter()
    for lane in drawn:
        assert all(before.end_s == after.start_s for before, after in zip(lane.slices, lane.slices[1:], strict=False))
        assert (lane.slices[0].start_s, lane.slices[-1].end_s) == (0, pytest.approx(1e-6 * END))
        assert sum(lane.measured(call_s).values()) == pytest.approx(call_s)
        assert min(lane.measured(call_s).values()) >= 0
        for part, seconds in lane.totals.items():
            found["idle" if part in GAPS else part] += round(1e6 * seconds, 6)
    assert +found == pytest.approx(dict(+counted(events)))
    busy = {(event.tid, moment) for event in events if event.pid for moment in range(int(event.ts), int(event.end))}
    further = len(busy) - len({moment for _, moment in busy})
    assert 1e6 * drawn[1].overlap_s == pytest.approx(further, abs=1e-6)


@pytest.mark.parametrize("name", ["cudaEventSynchronize", "cudaMemcpy", "cudaMemcpy2D", "cuMemcpyDtoH_v2"])
def test_calls_that_return_when_the_gpu_is_done(name):
    assert is_wait(Event(name, "X", "cuda_runtime"))


@pytest.mark.parametrize(
    "name", ["cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2", "cudaStreamWaitEvent", "cuLaunchKernelEx", "cudaMemsetAsync"]
)
def test_calls_that_return_before_and_leave_a_gap_to_the_host(name):
    waited = Event(name, "X", "cuda_runtime", 0, 1, 20, 30)
    assert not is_wait(waited)
    launches = [Event(CALL, "X", "cuda_runtime", 0, 1, at, 5, args={"correlation": at}) for at in (0, 60)]
    work = [Event("work", "X", "kernel", 1, 7, at + 5, 20, args={"correlation": at}) for at in (0, 60)]
    about = About("ch1", "x", "baseline", "default", {}, "", {}, call_s=1e-4, profiled_s=1e-4)
    gap = lanes(Profile(about, [*launches, waited, *work]))[1].slices[2]
    assert (gap.part, gap.start_s, gap.end_s) == (Part.HOST, pytest.approx(25e-6), pytest.approx(65e-6))


def test_a_thread_that_waits_beyond_the_next_launch_did_not_delay_it():
    other = Event(WAIT, "X", "cuda_runtime", 0, 2, 6, 90)
    launches = [Event(CALL, "X", "cuda_runtime", 0, 1, at, 5, args={"correlation": at}) for at in (0, 60)]
    work = [Event("work", "X", "kernel", 1, 7, at + 5, 20, args={"correlation": at}) for at in (0, 60)]
    about = About("ch1", "x", "baseline", "default", {}, "", {}, call_s=1e-4, profiled_s=1e-4)
    assert lanes(Profile(about, [*launches, other, *work]))[1].slices[2].part == Part.HOST
