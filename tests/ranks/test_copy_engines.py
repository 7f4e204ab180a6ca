"""The versions of chapter 6 whose copies go into the others' memory: threads stand for processes, a copy is at once."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch

from common.pairs.pair import ROOT, discover, load

PAIRS = {pair.name: pair for pair in discover(ROOT / "ch6")}
NAMES = ("gather_matmul", "ring_attention")
CALLS = 6


class Places:
    """Memory that all processes write; `wait`: what a barrier does."""

    def __init__(self, ranks, wait):
        self.ranks, self.known, self.lock, self.wait = ranks, {}, threading.Lock(), wait

    def symmetric(self, shape, dtype, device):
        with self.lock:
            places = self.known.setdefault(tuple(shape), tuple(torch.zeros(shape) for _ in range(self.ranks)))
        return SimpleNamespace(barrier=self.wait), places


def drawn(version, sizes, call, rank, ranks):
    torch.manual_seed(call)
    return version.inputs(**sizes, rank=rank, ranks=ranks, device="cpu")


@pytest.fixture
def computed(monkeypatch):
    """computed(name, ranks, wait): (answer, right answer) of each rank in several calls in a row; ranks may lag."""
    idle = MagicMock(**{"stream.side_effect": lambda stream: nullcontext()})
    for name in ("Stream", "stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(idle, name))

    def of(name, ranks, wait):
        places, pair = Places(ranks, wait), PAIRS[name]
        oracle, sizes = load(pair.baseline.path), pair.sizes["check"]
        versions = [load(pair.baseline.path.parent / f"optimized_{name}_copy.py") for _ in range(ranks)]
        inputs = [[drawn(oracle, sizes, call, rank, ranks) for rank in range(ranks)] for call in range(CALLS)]

        def process(rank):
            version, late = versions[rank], random.Random(rank)
            version.symmetric = places.symmetric
            version.dist = SimpleNamespace(get_rank=lambda: rank, get_world_size=lambda: ranks)
            state, answers = version.setup(**inputs[0][rank]), []
            for every in inputs:
                time.sleep(late.random() * 0.01)
                answers.append(version.run(**every[rank], **state))
            return answers

        with ThreadPoolExecutor(ranks) as threads:
            found = list(threads.map(process, range(ranks)))
        for call, every in enumerate(inputs):
            right = oracle.reference(**{key: [each[key] for each in every] for key in every[0]})
            yield from ((found[rank][call], right[rank]) for rank in range(ranks))

    return of


def is_near(pair):
    return torch.allclose(*pair, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_each_process_has_the_right_answer_call_after_call(name, ranks, computed):
    assert all(map(is_near, computed(name, ranks, threading.Barrier(ranks).wait)))


@pytest.mark.parametrize("name", NAMES)
def test_without_its_barriers_an_answer_is_wrong(name, computed):
    assert not all(map(is_near, computed(name, 2, lambda: None)))
