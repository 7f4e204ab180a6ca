"""Lanes of synthetic traces whose gaps are known, and what of a profiler's trace is kept."""

import time
from io import BytesIO
from pathlib import Path

import pytest
from matplotlib.legend import Legend
from msgspec import structs

from common.notebook.profile_figure import draw
from common.pairs.pair import ROOT
from common.profiling.recorder import MARK, trim
from common.record import profile_file
from common.record.files import RecordError
from common.record.profile_file import About, Event, Profile
from common.show.lanes import Part, costliest, lanes, quotable
from common.show.timeline_text import bar, timeline_rows, timeline_text

MOST_IN_ALL = 3_000_000  # bytes of all recorded profiles
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


def test_what_prose_quotes_is_of_a_call_without_the_profiler():
    expected = {"busy": "67%", "idle": "33%", "launches": "2", "gap": "15.0 us, waits for the host"}
    assert quotable(profile(*BUSY)) == expected
    assert quotable(profile(work(1, 0, 100)))["gap"] == "none"
    assert quotable(profile(call("aten::mm", 10, 40, "cpu_op"))) == {}


# What is drawn


def test_rows_of_letters():
    pieces = [("a", 0, 2e-5), ("b", 2e-5, 2.2e-5), ("c", 2.2e-5, 4e-5), ("d", 6e-5, 1e-4)]
    assert bar(pieces, 1e-4, 10) == "aacc  dddd"
    assert bar(timeline_rows(profile(*BUSY), lanes(profile(*BUSY)))["which"], 1e-4, 10) == "  111  2  "


def test_of_operators_the_outermost_of_each_thread_count_and_a_backward_pass_has_its_own_name():
    events = [
        call("aten::linear", 0, 30, "cpu_op"), call("aten::mm", 5, 25, "cpu_op"), call("aten::add", 30, 35, "cpu_op"),
        call("autograd::engine::evaluate_function: MmBackward0", 10, 90, "cpu_op", thread=2),
        call("Optimizer.step#AdamW.step", 90, 98, "user_annotation"), call("aten::mul_", 91, 95, "cpu_op"),
    ]  # fmt: skip
    names = {name: [round(event.dur) for event in own] for name, own in costliest(profile(*events))}
    assert names == {"MmBackward0": [80], "aten::linear": [30], "Optimizer.step": [8], "aten::add": [5]}
    text = timeline_text(profile(*events), 80)
    assert "1  80.0 us: MmBackward0\n2  30.0 us: aten::linear" in text
    assert "aten::mm" not in text


def test_a_gap_of_a_cpu_alone_is_named_by_what_follows():
    events = [call("aten::mm", 10, 40, "cpu_op"), call("aten::view", 70, 80, "cpu_op"), call("b", 70, 72, "cpu_op")]
    text = timeline_text(profile(*events), 80)
    assert "gap of 30.0 us: Python, before aten::view\ngap of 10.0 us: Python, before aten::mm\n" in text


def test_kernels_that_differ_late_in_their_names_are_not_one():
    kernels = [work(1, 0, 10), work(2, 20, 50)]
    names = ["void at::native::k<{lambda(float)#1}>", "void at::native::k<{lambda(float)#2}>"]
    events = [structs.replace(event, name=name) for event, name in zip(kernels, names, strict=True)]
    assert "1  30.0 us: k<{lambda(float)#2}>\n2  10.0 us: k<{lambda(float)#1}>" in timeline_text(profile(*events), 80)


COUNTERS = [
    {"kernel": "void work_1(int)", "launches": 1, "time_ns": 3e4, "dram_percent": 81.6, "sm_percent": 12,
     "occupancy_percent": 49, "l1_load_sectors": 320, "l1_load_requests": 10, "stall_memory": 22.35,
     "stall_barrier": 1.0},
    {"kernel": "work_2", "launches": 1, "time_ns": 1e4, "sm_percent": 7, "l1_load_sectors": 0, "l1_load_requests": 0},
]  # fmt: skip


def counted(*events: Event, rows=COUNTERS, missing="") -> Profile:
    return structs.replace(profile(*events), counters=rows, no_counters=missing)


def test_the_text_fits_80_columns_and_names_gaps_kernels_and_sums():
    text = timeline_text(counted(*BUSY, work(3, 20, 30, 9), missing="counters that this GPU or ncu lacks: x"), 80)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("double fused, default (NVIDIA H200, 2026-01-01)", "gap of 15.0 us: waits for the host, before work_2",
                 "\nstream 9", "1  30.0 us: work_1", "ncu lacks: x"):  # fmt: skip
        assert part in text
    assert "streams work at the same time for 10.0 us" in text


def test_a_kernels_counters_are_a_line():
    lines = timeline_text(counted(*BUSY), 80).splitlines()
    head, first, second = lines[-3:]
    assert head.split() == ["DRAM", "SM", "occupancy", "sectors/request", "largest", "stall", "launches"]
    assert first.split() == ["work_1(int)", "82%", "12%", "49%", "32.0", "memory", "22.4", "1"]
    assert second.split() == ["work_2", "7%", "1"]


def test_kernels_and_launches_whose_counters_are_not_shown_are_counted():
    many = [{"kernel": f"k{number}", "launches": 3, "time_ns": number} for number in range(11)]
    text = timeline_text(counted(*[work(number, number, number + 1) for number in range(50)], rows=many), 80)
    assert "k10 " in text and "k3 " in text and "k2 " not in text
    assert text.endswith("counters of 3 further kernels are in the file\n"
                         "counters: the first 33 of 50 launches were read\n")  # fmt: skip
    assert "launches were read" not in timeline_text(counted(*BUSY), 80)


def test_the_figure_has_a_row_for_each_lane_and_stream_legends_with_the_sums_and_the_texts_remarks():
    figure = draw(counted(*BUSY, work(3, 20, 30, 9, "gpu_memcpy")))
    figure.savefig(BytesIO())  # layout and labels are worked out only now
    axes, legends, below = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["CPU", "GPU", "stream 7", "stream 9", "which"]
    assert {"1", "2"} <= {text.get_text() for text in axes.texts}
    drawn = [child for child in legends.get_children() if isinstance(child, Legend)]
    headings = {legend.get_title().get_text() for legend in drawn}
    assert headings == {"CPU, of 60.0 us without the profiler", "GPU, of 60.0 us without the profiler"}
    texts = [text.get_text() for legend in drawn for text in legend.get_texts()]
    assert "kernels beside copies: 10.0 us, 17%" in texts
    (text,) = below.texts
    assert "gap of 15.0 us: waits for the host" in text.get_text() and "memory 22.4" in text.get_text()


# What is kept of a trace


def test_of_a_trace_the_call_that_is_nearest_to_the_measured_one_is_kept():
    trace = [
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": 0, "args": {"labels": label}}
        for pid, label in ((77, "CPU"), (77, "CPU"), (0, "GPU 0"), (1, "GPU 1"), ("Spans", ""))
    ]
    for begin, length in ((1000, 90), (2000, 50), (3000, 70)):
        mark = {"name": MARK, "cat": "user_annotation", "ph": "X", "pid": 77, "tid": 88, "ts": begin, "dur": length}
        op = mark | {"name": "aten::add", "cat": "cpu_op", "ts": begin + 5, "dur": 20, "args": {"Fwd thread id": 1}}
        start = {"name": "cuLaunchKernel", "cat": "cuda_driver", "ts": begin + 12, "dur": 3, "args": {"correlation": 4}}
        kernel = {"name": "k", "cat": "kernel", "pid": 0, "tid": 7, "ts": begin + 30, "dur": min(40, length - 30)}
        arrow = {"name": "ac2g", "cat": "ac2g", "ph": "s", "id": 4, "ts": begin + 12}
        other = mark | {"name": "python", "cat": "python_function"}
        trace += [mark, op, mark | start, mark | kernel | {"args": {"stream": 7, "queued": 0}}, mark | arrow, other]
    events, seconds = trim(trace, 68e-6)
    assert seconds == pytest.approx(70e-6)
    kept = [event for event in events if event.ph == "X"]
    assert [(event.name, event.pid, event.tid, event.ts, event.dur, event.args) for event in kept] == [
        ("aten::add", 77, 88, 5, 20, {}), ("cuLaunchKernel", 77, 88, 12, 3, {"correlation": 4}),
        ("k", 0, 7, 30, 40, {"stream": 7}),
    ]  # fmt: skip
    assert [(event.ts, event.id) for event in events if event.ph == "s"] == [(12, 4)]
    assert [event.args["labels"] for event in events if event.ph == "M"] == ["CPU", "GPU 0"]


def test_a_large_trace_loses_arrows_then_inner_operators_then_all_and_is_refused_if_it_stays_large(monkeypatch):
    arrows = [Event("launch", "s", "ac2g", ts=number**2 % 97, id=number) for number in range(200)]
    outer = [call(f"aten::{number**3 % 997}", 90, 99, "cpu_op", thread=number) for number in range(50)]
    inner = [call(f"aten::{number**4 % 997}", 91, 92, "cpu_op", thread=number) for number in range(50)]
    whole = profile(*BUSY, *inner, *outer, *arrows)
    assert profile_file.fitted(whole) == whole
    steps = [([*BUSY, *inner, *outer], "arrows"), ([*BUSY, *outer], "arrows, operators within operators"),
             (list(BUSY), "arrows, operators within operators, operators")]  # fmt: skip
    for events, left_out in steps:
        monkeypatch.setattr(profile_file, "MOST_BYTES", len(profile_file.packed(profile(*events))) + 60)  # the note
        fitted = profile_file.fitted(whole)
        assert {event.name for event in fitted.traceEvents} == {event.name for event in events}
        assert fitted.about.left_out == left_out and len(fitted.traceEvents) == len(events)
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
        ("cut", "damaged, or not packed by gzip"),
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


def size_problems(folder: Path) -> list[str]:
    """Which recorded profiles are too large to be committed, or all of them together."""
    sizes = {path: path.stat().st_size for path in folder.glob("*/profiles/*/*.json.gz")}
    problems = [str(path) for path, size in sizes.items() if size > profile_file.MOST_BYTES]
    return problems + ["all"] * (sum(sizes.values()) > MOST_IN_ALL)


def test_recorded_profiles_are_small():
    assert size_problems(ROOT / "recorded") == []


@pytest.mark.parametrize(
    ("sizes", "problems"),
    [([100_000] * 30, []), ([100_001], ["h200/profiles/ch1/0.json.gz"]), ([99_000] * 31, ["all"])],
)
def test_a_large_profile_and_many_are_found(sizes, problems, tmp_path):
    (tmp_path / "h200/profiles/ch1").mkdir(parents=True)
    for number, size in enumerate(sizes):
        (tmp_path / f"h200/profiles/ch1/{number}.json.gz").write_bytes(bytes(size))
    assert [name.removeprefix(f"{tmp_path}/") for name in size_problems(tmp_path)] == problems
