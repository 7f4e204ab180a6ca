"""Lanes of synthetic traces whose gaps are known."""

import time

import pytest
from profile_samples import BUSY, call, launch, profile, work

from common.record.profile_file import Event
from common.show.lanes import Part, lanes
from common.show.timeline_text import quotable


def gpu(*events: Event):
    """The GPU's slices, in microseconds."""
    lane = lanes(profile(*events))[1]
    return [(piece.part, round(1e6 * piece.start_s, 3), round(1e6 * piece.end_s, 3)) for piece in lane.slices]


# Gaps


def test_a_host_that_is_slower_than_the_gpu_is_what_it_waits_for():
    events = launch(1, 10, 15), work(1, 17, 20), launch(2, 40, 45), work(2, 48, 50)
    assert gpu(*events) == [
        (Part.HOST, 0, 15), (Part.LAUNCH, 15, 17), (Part.KERNELS, 17, 20), (Part.HOST, 20, 45), (Part.LAUNCH, 45, 48),
        (Part.KERNELS, 48, 50), (Part.END, 50, 100),
    ]  # fmt: skip


def test_a_launch_that_was_issued_in_time_leaves_only_its_latency():
    events = launch(1, 0, 5), launch(2, 5, 10), work(1, 5, 60), work(2, 62, 100)
    assert gpu(*events) == [(Part.HOST, 0, 5), (Part.KERNELS, 5, 60), (Part.LAUNCH, 60, 62), (Part.KERNELS, 62, 100)]


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpy", "cuCtxSynchronize"])
def test_a_gap_after_which_the_host_had_waited_is_a_synchronizations(name):
    events = launch(1, 0, 5), work(1, 5, 30), call(name, 8, 33), launch(2, 50, 55), work(2, 55, 100)
    assert (Part.SYNC, 30, 55) in gpu(*events)
    asynchronous = call("cudaMemcpyAsync", 8, 33)
    assert (Part.HOST, 30, 55) in gpu(*events[:2], asynchronous, *events[3:])


def test_a_synchronization_that_ended_before_the_gap_is_not_its_cause():
    events = launch(1, 0, 5), work(1, 5, 30), call("cudaEventSynchronize", 8, 20), launch(2, 50, 55), work(2, 55, 100)
    assert (Part.HOST, 30, 55) in gpu(*events)


def test_memory_that_is_asked_for_in_a_gap_is_its_cause():
    events = launch(1, 0, 5), work(1, 5, 30), call("cudaMalloc", 31, 48), launch(2, 50, 55), work(2, 55, 100)
    assert (Part.MEMORY, 30, 55) in gpu(*events)


def test_thousands_of_kernels_take_no_minutes():
    many = [launch(i, i / 50, i / 50 + 0.005) for i in range(4000)]
    many += [work(i, i / 50 + 0.01, i / 50 + 0.015) for i in range(4000)]
    begin = time.perf_counter()
    assert lanes(profile(*many))[1].totals[Part.KERNELS] == pytest.approx(20e-6)
    assert time.perf_counter() - begin < 5


# Streams, copies


def test_copies_beside_kernels_are_told_from_copies_alone():
    events = launch(1, 0, 1), launch(2, 1, 2), work(1, 2, 50, 20, "gpu_memcpy"), work(2, 30, 100)
    assert gpu(*events)[1:] == [
        (Part.LAUNCH, 1, 2),
        (Part.COPIES, 2, 30),
        (Part.BESIDE, 30, 50),
        (Part.KERNELS, 50, 100),
    ]
    lane = lanes(profile(*events))[1]
    assert lane.overlap_s == pytest.approx(20e-6)
    streams = {
        number: [(piece.part, round(1e6 * piece.start_s)) for piece in own] for number, own in lane.streams.items()
    }
    assert streams == {7: [(Part.KERNELS, 30)], 20: [(Part.COPIES, 2)]}


def test_kernels_that_touch_or_overlap_on_three_streams_leave_no_gap():
    events = work(1, 0, 40), work(2, 20, 60, 8), work(3, 10, 30, 9), work(4, 60, 100)
    assert gpu(*events) == [(Part.KERNELS, 0, 100)]
    assert lanes(profile(*events))[1].overlap_s == pytest.approx(40e-6)


# The CPU


def test_of_nested_events_the_innermost_counts_and_of_threads_the_one_at_work():
    events = [
        call("aten::mm", 10, 40, "cpu_op"), call("aten::inner", 12, 38, "cpu_op"), launch(1, 20, 25), work(1, 26, 90),
        call("cudaDeviceSynchronize", 50, 95), call("aten::backward", 60, 70, "cpu_op", thread=2),
    ]  # fmt: skip
    totals = {part: round(1e6 * total, 3) for part, total in lanes(profile(*events))[0].totals.items()}
    assert totals == {Part.PYTHON: 25, Part.OPERATORS: 35, Part.CALLS: 5, Part.WAITS: 35}


def test_a_launch_into_a_full_queue_waits_for_the_gpu(monkeypatch):
    monkeypatch.setattr("common.show.lanes.QUEUE", 2)
    calls = [launch(1, 0, 5), launch(2, 10, 15), launch(3, 20, 60), launch(4, 80, 85)]
    works = [work(1, 5, 60), work(2, 60, 70), work(3, 70, 75), work(4, 85, 90)]
    totals = lanes(profile(*calls, *works))[0].totals
    assert {part: round(1e6 * total) for part, total in totals.items()} == {
        Part.PYTHON: 45,
        Part.CALLS: 15,
        Part.WAITS: 40,
    }  # the third: two are on their way; at the fourth none


# Sums


def test_every_lane_adds_up_to_the_profiled_call_and_to_the_measured_one():
    for lane in lanes(profile(*BUSY)):
        assert sum(lane.totals.values()) == pytest.approx(1e-4, rel=1e-12)
        assert sum(lane.measured(60e-6).values()) == pytest.approx(60e-6, rel=1e-12)
        ends = [piece.end_s for piece in lane.slices]
        assert [piece.start_s for piece in lane.slices] == [0, *ends[:-1]] and ends[-1] == pytest.approx(1e-4)


def test_without_the_profiler_work_keeps_its_time_and_waits_shrink():
    measured = lanes(profile(*BUSY))[1].measured(60e-6)
    assert measured[Part.KERNELS] == pytest.approx(40e-6)
    assert measured[Part.HOST] == pytest.approx(30e-6 * 20 / 60)
    slower = lanes(profile(*BUSY))[1].measured(20e-6)  # less than the kernels took under the profiler
    assert slower[Part.KERNELS] == pytest.approx(8e-6)


def test_what_prose_quotes_is_of_a_call_without_the_profiler():
    expected = {"busy": "67%", "idle": "33%", "launches": "2", "gap": "15.0 us, waits for the host",
                "time_1": "30.0 us", "time_2": "10.0 us"}  # fmt: skip
    assert quotable(profile(*BUSY)) == expected
    assert quotable(profile(work(1, 0, 100)))["gap"] == "none"
    assert quotable(profile(call("aten::mm", 10, 40, "cpu_op"))) == {}
