"""What a timed pair of several processes keeps: the times of all, the bytes that each sends, the group."""

import pytest
from samples import write_pair

from common.engine.runner import run_pairs
from common.pairs.pair import ROOT, discover
from common.record.load import load_record, save_record

pytestmark = [pytest.mark.rest, pytest.mark.xdist_group("ranks")]


@pytest.fixture(scope="module")
def record(machine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("timed")
    texts = [(ROOT / f"ch6/{kind}_buckets.py").read_text() for kind in ("baseline", "optimized")]
    write_pair(folder, "buckets", texts[1], texts[0].replace('"cpu": {"count": 40,', '"cpu": {"count": 10,'))
    return run_pairs(discover(folder), device="cpu", fast=True)


def test_a_sample_is_the_largest_of_the_ranks_times(record, tmp_path):
    save_record(record, tmp_path / "r.json")
    (pair,) = load_record(tmp_path / "r.json").pairs
    assert pair.group["count"] == 2 and pair.group["backend"] == "gloo"
    assert {"baseline", "optimized", "control"} <= pair.arms.keys(), pair.rows
    for arm in pair.arms.values():
        assert arm.seconds == [[max(ranks) for ranks in block] for block in arm.by_rank]
        assert {len(ranks) for block in arm.by_rank for ranks in block} == {2}


def test_the_bytes_that_each_rank_sends_are_those_of_the_cost(record):
    (pair,) = record.pairs
    for label in ("baseline", "optimized"):
        assert pair.arms[label].sent_bytes == [pair.cost["link_bytes"]] * 2
