"""What the still figures show is what was counted, and schedules obey their rules."""

import io
from itertools import pairwise

import numpy as np
import pytest
import torch

from common.notebook import places, timelines
from common.pairs.pair import ROOT, discover, load

triton = pytest.importorskip("triton")

from common.traffic import traced  # noqa: E402


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


def test_the_figure_says_what_a_pairs_load_fetches():
    _, accesses = traced(module("ch1", "coalescing").run, torch.randn(1 << 14))
    figure = places.lanes_to_sectors({"baseline": accesses[0].addresses[:32] - accesses[0].addresses[0]})
    assert figure.axes[0].get_title().startswith("baseline: 128 of 1,024 bytes used, 32 sectors fetched")
    assert drawn(figure) > 1000


# Programs and tiles


def test_softmax_has_a_row_a_program_and_masked_lanes_beyond_its_end():
    answer, accesses = traced(module("ch3", "softmax").run, torch.randn(5, 1500))
    found = places.tile_map(accesses, answer)
    assert found.shape == (5, 2048)
    assert (found[:, :1500] == np.arange(5)[:, None]).all()
    assert (found[:, 1500:] == places.BEYOND).all()


def test_tiles_of_a_product_are_in_launch_order():
    inputs = module("ch4", "tile_size").inputs(m=300, n=700, k=64, device="cpu")
    answer, accesses = traced(module("ch4", "tile_size", "optimized").run, **inputs, block_m=128, block_n=256, stages=3)
    found = places.tile_map(accesses, answer)
    assert found.shape == (384, 768)
    assert [found[0, 0], found[128, 0]] == [0, 1]
    assert sorted(np.unique(found[:300, :700]).tolist()) == list(range(9))
    assert (found[300:] == places.BEYOND).all() and (found[:, 700:] == places.BEYOND).all()
    figure = places.programs_to_tiles({"grouped": found})
    assert {text.get_text() for text in figure.axes[0].texts} == {str(program) for program in range(9)}
    assert drawn(figure) > 1000


# Schedules


def test_a_lane_does_one_thing_at_a_time_and_a_buffer_is_free_before_it_is_filled():
    spans = timelines.streams((3.0, 1.0, 2.0), 7, 2)
    for lane in timelines.STAGES:
        own = [span for span in spans if span.lane == lane]
        assert all(first.end_s <= second.start_s for first, second in pairwise(own))
    at = {(span.lane, span.number): span for span in spans}
    assert all(at["copy in", chunk].start_s >= at["copy out", chunk - 2].end_s for chunk in range(2, 7))
    assert all(at["copy out", chunk].start_s >= at["compute", chunk].end_s for chunk in range(7))


# Widths and queues


@pytest.mark.parametrize(("buffers", "length"), [(1, 12.0), (2, 7.0), (3, 6.0), (4, 6.0)])
def test_more_buffers_hide_more_of_equal_stages(buffers, length):
    assert timelines.length_s(timelines.streams((1.0, 1.0, 1.0), 4, buffers)) == length
