"""The versions of chapter 6 whose copies go into the others' memory: threads stand for processes, a copy is at once."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import count
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch

from common.pairs.pair import ROOT, discover, load

PAIRS = {pair.name: pair for pair in discover(ROOT / "ch6")}
NAMES = ("gather_matmul", "matmul_scatter", "ring_attention")
CALLS = 6
LATE_S = 0.01
HANGS_S = 60  # a thread that raises lets the others wait


class Places:
    """Memory that all processes write. `without`: which barrier of a call does nothing; None: each one waits."""

    def __init__(self, ranks, without):
        self.ranks, self.without, self.known, self.lock = ranks, without, {}, threading.Lock()
        self.wait = threading.Barrier(ranks, timeout=HANGS_S).wait

    def symmetric(self, rank, shape, dtype, device):
        with self.lock:
            places = self.known.setdefault(tuple(shape), tuple(torch.zeros(shape) for _ in range(self.ranks)))
        turn, late = count(), random.Random(rank)

        def barrier():  # both versions have as many in a call as there are processes
            if next(turn) % self.ranks != self.without:
                self.wait()
                time.sleep(late.random() * LATE_S)

        return SimpleNamespace(barrier=barrier), places


def drawn(version, sizes, call, rank, ranks):
    torch.manual_seed(call)
    return version.inputs(**sizes, rank=rank, ranks=ranks, device="cpu")


@pytest.fixture
def computed(monkeypatch):
    """computed(name, ranks, without): (answer, right answer) of each rank in several calls in a row; ranks may lag."""
    idle = MagicMock(**{"stream.side_effect": lambda stream: nullcontext()})
    for name in ("Stream", "stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(idle, name))

    def of(name, ranks, without=None):
        places, pair = Places(ranks, without), PAIRS[name]
        oracle, sizes = load(pair.baseline.path), pair.sizes["check"]
        versions = [load(pair.baseline.path.parent / f"optimized_{name}_copy.py") for _ in range(ranks)]
        inputs = [[drawn(oracle, sizes, call, rank, ranks) for rank in range(ranks)] for call in range(CALLS)]

        def process(rank):
            version = versions[rank]
            version.symmetric = partial(places.symmetric, rank)
            version.dist = SimpleNamespace(get_rank=lambda: rank, get_world_size=lambda: ranks)
            state = version.setup(**inputs[0][rank])
            return [version.run(**every[rank], **state) for every in inputs]

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
    assert all(map(is_near, computed(name, ranks)))


@pytest.mark.parametrize("without", range(2))
@pytest.mark.parametrize("name", NAMES)
def test_without_any_one_of_its_barriers_an_answer_is_wrong(name, without, computed):
    assert not all(map(is_near, computed(name, 2, without)))
