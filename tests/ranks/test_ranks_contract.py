"""What a pair with RANKS must have, and where its processes run."""

import pytest
import torch
import torch.distributed as dist
from samples import refused, write_pair
from test_group_faults import HEAD, REFERENCE, version

from common.checks.comm_bytes import _sent_bytes
from common.engine.job import Job
from common.engine.rank_group import is_timed, place_job
from common.pairs.pair import discover

BASELINE = version(head=HEAD) + REFERENCE


def test_bytes_that_are_sent_by_three_are_rounded_up(monkeypatch):
    """Of 4 bytes that 3 sum, 2 * 2 / 3 are sent, 5.33: rounded down, an honest version would send too little."""
    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    number = torch.zeros(1)
    calls = {"allreduce_": ([number],), "_reduce_scatter_base_": (number, number), "_allgather_base_": (number, number)}
    assert [_sent_bytes(name, arguments) for name, arguments in calls.items()] == [6, 3, 8]


def made(folder, baseline=BASELINE, optimized=None):
    write_pair(folder, "sum", version() if optimized is None else optimized, baseline)
    return discover(folder)[0]


@pytest.mark.parametrize(
    ("baseline", "optimized", "said"),
    [
        (BASELINE.replace("RANKS = 2", "RANKS = 1"), None, "RANKS must be an integer, at least 2"),
        (BASELINE.replace("RANKS = 2", "RANKS = True"), None, "RANKS must be an integer, at least 2"),
        (BASELINE.replace("RANKS = 2\n", ""), None, "add RANKS to the baseline"),
        (BASELINE, version().replace("rank=0, ranks=2, ", ""), "add rank, ranks before device"),
        (BASELINE, version(head=HEAD), "has RANKS: remove it here"),
        (version(head=HEAD), None, "has RANKS and no `reference`"),
    ],
)
def test_a_pair_that_lacks_something_is_refused(baseline, optimized, said, tmp_path):
    with refused(said, tmp_path):
        made(tmp_path, baseline, optimized)


@pytest.mark.parametrize(
    ("kind", "gpus", "size", "found"),
    [
        ("cpu", 0, "default", (2, "cpu", False)),
        ("cpu", 0, "cpu", (2, "cpu", True)),
        ("cuda", 1, "default", (2, "cpu", False)),  # too few: verified with gloo
        ("cuda", 2, "default", (2, "cuda:0", True)),
        ("cuda", 8, "default", (8, "cuda:0", True)),
    ],
)
def test_there_is_a_process_for_each_gpu_or_two_on_the_cpu(kind, gpus, size, found, tmp_path):
    device = "cuda:0" if kind == "cuda" else "cpu"
    job = place_job(Job(made(tmp_path), size, device, {"kind": kind, "gpus": gpus}, {}, [], []))
    assert (job.ranks, job.device, is_timed(job)) == found
