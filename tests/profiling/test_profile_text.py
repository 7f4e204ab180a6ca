"""What is drawn of a profile, as text and as a figure."""

from io import BytesIO

from matplotlib.legend import Legend
from msgspec import structs
from profile_samples import BUSY, call, profile, work

from common.notebook.profile_figure import draw
from common.record.profile_file import Event, Profile
from common.show.lanes import costliest, lanes
from common.show.timeline_text import bar, timeline_rows, timeline_text


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
