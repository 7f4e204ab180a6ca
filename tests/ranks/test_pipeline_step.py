"""The lesson of pipeline_step: who works when, and how many micro-batches wait for their backward meanwhile."""

from itertools import accumulate

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from common.pairs.pair import ROOT, load


@pytest.fixture(params=[(0, 2), (1, 4)], ids=lambda at: f"rank {at[0]} of {at[1]}")
def place(request):
    """(rank, ranks) in a group whose members this process stands for: what it receives is anything."""
    rank, ranks = request.param
    dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
    yield rank, ranks
    dist.destroy_process_group()


def schedule(name, monkeypatch):
    """The order in which this process computes F(orward) and B(ackward), for 8 micro-batches."""
    module, order = load(ROOT / f"ch6/{name}_pipeline_step.py"), []
    forward, backward = module.forward, torch.Tensor.backward
    monkeypatch.setattr(module, "forward", lambda *given: (order.append("F"), forward(*given))[1])
    monkeypatch.setattr(torch.Tensor, "backward", lambda *given: (order.append("B"), backward(*given))[1])
    module.run(torch.ones(16, 3), torch.eye(3).expand(2, 3, 3).clone())
    return "".join(order)


def most_kept(order):
    return max(accumulate(1 if each == "F" else -1 for each in order))


def test_all_forward_passes_come_first_and_everything_is_kept(place, monkeypatch):
    order = schedule("baseline", monkeypatch)
    assert order == "F" * 8 + "B" * 8 and most_kept(order) == 8


def test_one_forward_one_backward_keeps_as_many_as_there_are_stages_from_here_on(place, monkeypatch):
    (rank, ranks), order = place, schedule("optimized", monkeypatch)
    ahead = ranks - 1 - rank
    assert order == "F" * ahead + "FB" * (8 - ahead) + "B" * ahead and most_kept(order) == ranks - rank
