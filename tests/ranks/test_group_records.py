"""What a pair of several processes keeps: the times of all, the bytes that each sends; what its reference is given."""

import pytest
from samples import write_pair

from common.engine.runner import run_pairs
from common.pairs.pair import ROOT, discover
from common.record.record_file import load_record, save_record

pytestmark = [pytest.mark.rest, pytest.mark.xdist_group("ranks")]

STORE = """    import pickle
    store, rank, turn = dist.distributed_c10d._get_default_store(), dist.get_rank(), next(TURNS)
    store.set(f"{turn}/{rank}", pickle.dumps(grads))
    dist.barrier()
    return [a + b for a, b in zip(grads, pickle.loads(store.get(f"{turn}/{1 - rank}")))]
from itertools import count
TURNS = count()
"""


@pytest.fixture(scope="module")
def record(machine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("timed")
    texts = [(ROOT / f"ch6/{kind}_buckets.py").read_text() for kind in ("baseline", "optimized")]
    variants = {"": texts[1], "store": texts[1].partition("    flat = ")[0] + STORE}
    write_pair(folder, "buckets", variants, texts[0].replace('"cpu": {"count": 40,', '"cpu": {"count": 10,'))
    return run_pairs(discover(folder), device="cpu", fast=True)


def test_a_sample_is_the_largest_of_the_ranks_times(record, tmp_path):
    save_record(record, tmp_path / "r.json")
    (pair,) = load_record(tmp_path / "r.json").pairs
    assert pair.group["count"] == 2 and pair.group["backend"] == "gloo"
    assert {"baseline", "optimized", "optimized/store", "control"} <= pair.arms.keys(), pair.rows
    for arm in pair.arms.values():
        assert arm.seconds == [[max(ranks) for ranks in block] for block in arm.by_rank]
        assert {len(ranks) for block in arm.by_rank for ranks in block} == {2}


def test_the_bytes_that_each_rank_sends_are_those_of_the_cost(record):
    (pair,) = record.pairs
    for label in ("baseline", "optimized"):
        assert pair.arms[label].sent_bytes == [pair.cost["link_bytes"]] * 2
    assert pair.arms["optimized/store"].sent_bytes == []  # not counted, which is not 0


UNEVEN = '''"""Sum parts of unequal length: 4 bytes sent."""
import torch
import torch.distributed as dist
RANKS = 2
SIZES = {"check": {"n": 127}, "check/empty": {"n": 1}, "default": {"n": 4096}}
def inputs(n=127, rank=0, ranks=2, device="cuda"):
    part = torch.randn(n, 3, device=device).tensor_split(ranks)[rank]
    return {"x": part.mT, "others": [part > 0, {"scale": 2 + rank}]}
def reference(x, others):
    sums = [x * is_used.mT * each["scale"] for x, (is_used, each) in zip(x, others)]
    return [torch.stack([each.sum() for each in sums]).sum()[None]] * len(x)
def cost(x, others):
    return {"link_bytes": 4}
def run(x, others):
    total = (x * others[0].mT * others[1]["scale"]).sum()[None]
    dist.all_reduce(total)
    return total
'''


def test_a_reference_is_given_the_parts_of_all_ranks_also_of_unequal_sizes(machine, tmp_path):
    write_pair(tmp_path, "uneven", UNEVEN.replace("RANKS = 2", "").replace("SIZES", "_SIZES"), UNEVEN)
    (pair,) = run_pairs(discover(tmp_path), device="cpu", check_only=True, stressed=False).pairs
    assert [row.verdict for row in pair.rows] == ["verified"], pair.rows
