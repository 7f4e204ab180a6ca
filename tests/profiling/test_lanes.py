"""Lanes of synthetic traces whose gaps are known, and what of a profiler's trace is kept."""

import time
from io import BytesIO

import pytest
from msgspec import structs

from common.notebook.profile_figure import draw
from common.profiling import profile_file
from common.profiling.lanes import Part, lanes, subtract, union
from common.profiling.profile_file import About, Event, Profile
from common.profiling.recorder import MARK, trim
from common.profiling.timeline_text import bar, timeline_text
from common.record.files import RecordError

DEVICE = {"kind": "cuda", "name": "NVIDIA H200"}
ABOUT = About(
    "ch1", "double", "optimized/fused", "default", {"n": 4}, "0" * 16, {"device": DEVICE, "date": "2026-01-01"},
    call_s=60e-6, profiled_s=1e-4,
)  # fmt: skip


def launch(number: int, begin: float, end: float, name: str = "cudaLaunchKernel") -> Event:
    return Event(name, "X", "cuda_runtime", 0, 1, begin, end - begin, args={"correlation": number})


def work(number: int, begin: float, end: float, stream: int = 7, cat: str = "kernel") -> Event:
    return Event(f"work_{number}", "X", cat, 1, stream, begin, end - begin, args={"correlation": number})


def call(name: str, begin: float, end: float, cat: str = "cuda_runtime", thread: int = 1) -> Event:
    return Event(name, "X", cat, 0, thread, begin, end - begin)


def profile(*events: Event) -> Profile:
    """Of a call of 100 us under the profiler, 60 us without it."""
    return Profile(ABOUT, list(events))


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


# Sums


BUSY = launch(1, 10, 15), work(1, 20, 50), launch(2, 60, 65), work(2, 70, 80)


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


def test_sets_of_intervals():
    assert union([(3, 4), (0, 1), (1, 2), (5, 5), (0.5, 1.5)]) == [(0, 2), (3, 4)]
    assert subtract([(0, 10)], [(0, 1), (3, 4), (9, 12)]) == [(1, 3), (4, 9)]
    assert subtract([(0, 2), (3, 5)], [(1, 4)]) == [(0, 1), (4, 5)]
    assert subtract([(0, 2)], []) == [(0, 2)] and subtract([(1, 2)], [(0, 3)]) == []


# What is drawn


def test_a_lane_as_letters():
    assert bar(lanes(profile(*BUSY))[1].slices, 1e-4, 20) == "hhhl######hhhl##eeee"


def test_the_text_fits_80_columns_and_names_gaps_kernels_and_sums():
    text = timeline_text(profile(*BUSY, work(3, 20, 30, 9)), 80)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("double fused, default, NVIDIA H200", "gap of 15.0 us: waits for the host, before work_2", "stream 9"):
        assert part in text
    assert "streams work at the same time for 10.0 us" in text


def test_the_figure_has_a_row_for_each_lane_and_stream_and_legends_with_the_sums():
    figure = draw(profile(*BUSY, work(3, 20, 30, 9, "gpu_memcpy")))
    figure.savefig(BytesIO())  # layout and labels are worked out only now
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["CPU", "stream 7", "stream 9", "GPU"]
    assert {legend.get_title().get_text() for legend in figure.legends} == {
        "CPU, of 60.0 us without the profiler", "GPU, of 60.0 us without the profiler",
    }  # fmt: skip
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert "kernels beside copies: 10.0 us, 17%" in texts


# What is kept of a trace


def test_of_a_trace_the_call_that_is_nearest_to_the_measured_one_is_kept():
    trace = []
    for begin, length in ((1000, 90), (2000, 50), (3000, 70)):
        mark = {"name": MARK, "cat": "user_annotation", "pid": 77, "tid": 88, "ts": begin, "dur": length}
        op = mark | {"name": "aten::add", "cat": "cpu_op", "ts": begin + 5, "dur": 20, "args": {"Fwd thread id": 1}}
        inner = op | {"name": "aten::fill", "ts": begin + 6, "dur": 5}
        start = op | {
            "name": "cuLaunchKernel",
            "cat": "cuda_driver",
            "ts": begin + 12,
            "dur": 3,
            "args": {"correlation": begin},
        }
        end = min(40, length - 30)
        kernel = {"name": "k", "cat": "kernel", "pid": 0, "tid": 7, "ts": begin + 30, "dur": end}
        kernel["args"] = {"correlation": begin, "stream": 7, "device": 0, "queued": 0}
        other = mark | {"name": "python", "cat": "python_function"}
        trace += [{**event, "ph": "X"} for event in (mark, op, inner, start, kernel, other)]
    events, seconds = trim(trace, 68e-6)
    assert seconds == pytest.approx(70e-6)
    assert [(event.name, event.pid, event.tid, event.ts, event.dur) for event in events if event.ph == "X"] == [
        ("aten::add", 0, 1, 5, 20), ("aten::fill", 0, 1, 6, 5), ("cuLaunchKernel", 0, 1, 12, 3), ("k", 1, 7, 30, 40),
    ]  # fmt: skip
    assert [event.args for event in events if event.cat == "cpu_op"] == [{}, {"depth": 1}]
    assert [(event.ph, event.ts) for event in events if event.cat == "ac2g"] == [("s", 12), ("f", 30)]
    assert {event.args["name"] for event in events if event.ph == "M"} == {"CPU", "GPU 0", "thread 1", "stream 7"}


def test_a_large_trace_loses_arrows_then_inner_operators_and_is_refused_if_it_stays_large(monkeypatch):
    arrows = [Event("launch", "s", "ac2g", ts=number**2 % 97, id=number) for number in range(200)]
    inner = Event("aten::inner", "X", "cpu_op", args={"depth": 1})
    whole = profile(*BUSY, inner, *arrows)
    assert profile_file.fitted(whole) == whole
    sizes = [len(profile_file.packed(profile(*events))) for events in ((*BUSY, inner), BUSY)]
    monkeypatch.setattr(profile_file, "MOST_BYTES", sizes[0] + 30)  # the note of what was left out takes some
    fitted = profile_file.fitted(whole)
    assert fitted.traceEvents == [*BUSY, inner] and fitted.about.left_out == "arrows"
    monkeypatch.setattr(profile_file, "MOST_BYTES", 50)
    with pytest.raises(RecordError, match="are accepted: profile a smaller size"):
        profile_file.fitted(whole)


# Files


def test_a_profile_is_read_as_it_was_written_and_equal_ones_have_equal_bytes(tmp_path):
    path = profile_file.keep(profile(*BUSY), tmp_path)
    assert path == tmp_path / "nvidia_h200/profiles/ch1/double.fused.json.gz"
    assert profile_file.load(path) == profile(*BUSY)
    assert profile_file.packed(profile(*BUSY)) == path.read_bytes()


def damaged(kind: str) -> bytes:
    import gzip

    whole = profile_file.packed(profile(*BUSY))
    late = profile_file.packed(profile(work(1, 90, 110)))
    nameless = structs.replace(ABOUT, environment={"device": {}, "date": "2026"})
    return {
        "cut": whole[:-20],
        "not packed": b'{"traceEvents": []}',
        "no JSON": gzip.compress(b"{"),
        "foreign": gzip.compress(b'{"traceEvents": [{"name": "x", "ph": "X", "ts": 1, "dur": 2}]}'),
        "an array": gzip.compress(b"[]"),
        "negative": gzip.compress(gzip.decompress(whole).replace(b'"dur":30', b'"dur":-30')),
        "newer": gzip.compress(gzip.decompress(whole).replace(b'"form":1', b'"form":9')),
        "late": late,
        "nameless": profile_file.packed(Profile(nameless, [])),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cut", "damaged: its end is missing"),
        ("not packed", "damaged, or not packed by gzip"), ("no JSON", "not JSON"),
        ("foreign", "not a profile of the course"), ("an array", "not a profile of the course"),
        ("negative", "not a profile of the course"), ("newer", "written by a newer version of the course"),
        ("late", "an event ends after the call"), ("nameless", "not a profile of the course"),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_trace_is_refused_in_one_line(kind, said, tmp_path):
    path = tmp_path / "x.json.gz"
    path.write_bytes(damaged(kind))
    with pytest.raises(RecordError, match=said) as caught:
        profile_file.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
