"""What the still figures show is what was counted, and schedules obey their rules."""

import io
from itertools import pairwise

import numpy as np
import pytest
import torch

from common.notebook import places, timelines, widths
from common.notebook.named_gpu import Gpu
from common.pairs.pair import ROOT, discover, load

triton = pytest.importorskip("triton")

from common.traffic import traced  # noqa: E402

MS = 1e-3


def module(chapter: str, name: str, label: str = "baseline"):
    (pair,) = discover(ROOT / chapter, name)
    return load(next(version.path for version in pair.versions if version.label == label))


def drawn(figure) -> int:
    file = io.BytesIO()
    figure.savefig(file)  # layout and labels are worked out only now
    return file.getbuffer().nbytes


# Lanes and sectors


@pytest.mark.parametrize(
    ("stride", "size", "sectors"), [(1, 4, 4), (2, 4, 8), (8, 4, 32), (64, 4, 32), (1, 2, 2), (3, 8, 24)]
)
def test_a_warps_sectors(stride, size, sectors):
    touched = places.sectors_of(places.strided(stride, size), size)
    assert (len(touched), sum(map(len, touched.values()))) == (sectors, 32 * size)


def test_an_address_across_a_sectors_end_uses_both():
    assert places.sectors_of(np.array([30], np.uint64), 4) == {0: {30, 31}, 1: {0, 1}}


@pytest.mark.parametrize(
    ("label", "said"),
    [("baseline", "128 of 1,024 bytes used, 32 sectors fetched"), ("optimized", "128 of 128 bytes used, 4")],
)
def test_the_figure_says_what_a_pairs_load_fetches(label, said):
    _, accesses = traced(module("ch1", "coalescing", label).run, torch.randn(1 << 14))
    figure = places.lanes_to_sectors({label: accesses[0].addresses[:32] - accesses[0].addresses[0]})
    assert figure.axes[0].get_title().startswith(f"{label}: {said}")
    assert drawn(figure) > 1000


# Programs and tiles


def test_softmax_has_a_row_a_program_and_masked_lanes_beyond_its_end():
    answer, accesses = traced(module("ch3", "softmax").run, torch.randn(5, 1500))
    found = places.tile_map(accesses, answer)
    assert found.shape == (5, 2048)
    assert (found[:, :1500] == np.arange(5)[:, None]).all()
    assert (found[:, 1500:] == places.BEYOND).all()


def test_a_vectors_tail_is_masked_and_lanes_apart_are_where_they_are():
    x = torch.randn(2500)
    answer, accesses = traced(module("ch1", "coalescing", "optimized").run, x)
    found = places.tile_map(accesses, answer, columns=1024)
    assert (
        found == np.where(np.arange(3 * 1024) < 2500, np.arange(3 * 1024) // 1024, places.BEYOND).reshape(3, 1024)
    ).all()
    answer, accesses = traced(module("ch1", "coalescing").run, x)
    found = places.tile_map(accesses, answer, columns=100)
    assert (found.reshape(-1)[:2500] == np.arange(2500) % 3).all()
    read = places.tile_map(accesses, x, "load", 100)
    assert (read == found).all()


@pytest.mark.parametrize(("label", "second"), [("optimized", (0, 256)), ("optimized/grouped", (128, 0))])
def test_tiles_of_a_product_are_in_launch_order(label, second):
    inputs = module("ch4", "matmul").inputs(m=300, n=700, k=64, device="cpu")
    answer, accesses = traced(module("ch4", "matmul", label).run, **inputs)
    found = places.tile_map(accesses, answer)
    assert found.shape == (384, 768)
    assert [found[0, 0], found[second]] == [0, 1]
    assert sorted(np.unique(found[:300, :700]).tolist()) == list(range(9))
    assert (found[300:] == places.BEYOND).all() and (found[:, 700:] == places.BEYOND).all()
    figure = places.programs_to_tiles({label: found})
    assert {text.get_text() for text in figure.axes[0].texts} == {str(program) for program in range(9)}
    assert drawn(figure) > 1000


def test_an_access_elsewhere_is_refused():
    _, accesses = traced(module("ch1", "coalescing").run, torch.randn(100))
    with pytest.raises(ValueError, match="no store of these accesses touches the tensor"):
        places.tile_map(accesses, torch.zeros(100))


def test_no_listener_hears_nothing_of_other_calls():
    run, x = module("ch1", "coalescing").run, torch.randn(3000)
    first, second = traced(run, x)[1], traced(run, x)[1]
    assert [(each.program, each.kind, each.mask.sum()) for each in first] == [
        (each.program, each.kind, each.mask.sum()) for each in second
    ]
    assert [(each.launch, each.program, each.kind) for each in first] == [
        (0, program, kind) for program in range(3) for kind in ("load", "store")
    ]


# Schedules


@pytest.mark.parametrize(("buffers", "length"), [(1, 12.0), (2, 7.0), (3, 6.0), (4, 6.0)])
def test_more_buffers_hide_more_of_equal_stages(buffers, length):
    assert timelines.length_s(timelines.streams((1.0, 1.0, 1.0), 4, buffers)) == length


def test_the_longest_stage_is_what_is_left():
    spans = timelines.streams((1.0, 5.0, 2.0), 10, 3)
    assert timelines.length_s(spans) == 1 + 10 * 5 + 2
    computed = [(span.start_s, span.end_s) for span in spans if span.lane == "compute"]
    assert computed == [(1 + 5 * chunk, 6 + 5 * chunk) for chunk in range(10)]


def test_a_lane_does_one_thing_at_a_time_and_a_buffer_is_free_before_it_is_filled():
    spans = timelines.streams((3.0, 1.0, 2.0), 7, 2)
    for lane in timelines.STAGES:
        own = [span for span in spans if span.lane == lane]
        assert all(first.end_s <= second.start_s for first, second in pairwise(own))
    at = {(span.lane, span.number): span for span in spans}
    assert all(at["copy in", chunk].start_s >= at["copy out", chunk - 2].end_s for chunk in range(2, 7))
    assert all(at["copy out", chunk].start_s >= at["compute", chunk].end_s for chunk in range(7))


def test_small_kernels_wait_for_the_cpu_and_a_graphs_for_one_another():
    apart = timelines.launches([(4.0, 1.0)] * 5)
    graph = timelines.launches([(4.0, 1.0)] + [(0.0, 1.0)] * 4)
    large = timelines.launches([(1.0, 9.0)] * 2)
    assert [timelines.length_s(each) for each in (apart, graph, large)] == [21.0, 9.0, 19.0]
    assert [span.start_s for span in apart if span.lane == "GPU"] == [4.0, 8.0, 12.0, 16.0, 20.0]
    assert sum(span.lane == "CPU" for span in graph) == 1


def test_a_timeline_says_how_long_it_takes_in_a_unit_that_suits():
    figure = timelines.timelines(
        {"one": timelines.streams((MS, MS, MS), 2, 1), "two": timelines.streams((MS, MS, MS), 2, 2)}
    )
    assert [axes.get_title(loc="left").split(" (")[0] for axes in figure.axes] == ["one: 6.00 ms", "two: 4.00 ms"]
    assert figure.axes[-1].get_xlabel() == "time (ms)"
    assert [bar.get_x() for bar in figure.axes[0].patches][:3] == pytest.approx([0, 1, 2])
    assert drawn(figure) > 1000


# Widths and queues


def test_a_row_is_held_until_it_is_as_wide_as_what_holds_it():
    gpu = Gpu(None, "a GPU", {}, sms=100, l1_bytes=128 << 10, l2_bytes=40_000_000)
    assert widths.widest(gpu, 4, 2) == {"registers": 32768, "L1": 16384, "L2": 50_000}
    figure = widths.row_widths(gpu, 4, 2, (1000, 5000))
    (axes,) = figure.axes
    said = [text.get_text() for text in axes.texts]
    assert [text for text in said if "columns" in text] == ["32,768 columns", "16,384 columns", "50,000 columns"]
    assert "a GPU" in axes.get_title() and "2-byte" in axes.get_title()
    marks = [line.get_ydata() for line in axes.lines if list(line.get_xdata()) == [1000, 5000]]
    assert [list(each) for each in marks] == [[8000, 40_000], [800_000, 4_000_000]]
    assert drawn(figure) > 1000


def test_a_queue_is_a_bar_as_long_as_it():
    figure = places.queues({"one address": 4096.0, "64 addresses": 64.0, "no atomics": 0.0})
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [4096, 64, 0]
    assert [text.get_text() for text in axes.texts] == ["4,096", "64", "none"]
    assert axes.get_xscale() == "log" and "same address" in axes.get_xlabel()
    assert len({bar.get_hatch() for bar in axes.patches}) == 3
    assert drawn(figure) > 1000
