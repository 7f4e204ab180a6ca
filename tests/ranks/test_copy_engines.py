"""The versions of chapter 6 whose copies go into the others' memory: threads stand for processes.

What is on the stream of the products is done at once. A copy on another stream is done as late as possible: when the
products wait for it.
"""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import SimpleNamespace

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

        def barrier():  # with two processes, each version has two in a call
            if next(turn) % self.ranks != self.without:
                self.wait()
                time.sleep(late.random() * LATE_S)

        return SimpleNamespace(barrier=barrier), places


class Copies:
    """A stream of copies. They are done when another stream waits for it, or for an event on it."""

    def __init__(self, *_):
        self.left, self.done = [], 0

    def issue(self, place, source):
        self.left.append((place, source))
        return place

    def record_event(self):
        return self, self.done + len(self.left)

    def wait_stream(self, other):
        pass  # the products are done at once

    def run(self, until=None):
        while self.left and (until is None or self.done < until):
            place, source = self.left.pop(0)
            COPY(place, source)
            self.done += 1


class Products(SimpleNamespace):
    """The stream of the products."""

    def wait_stream(self, copies):
        copies.run()

    def wait_event(self, event):
        copies, until = event
        copies.run(until)


COPY, CURRENT = torch.Tensor.copy_, threading.local()


@contextmanager
def current(stream):
    CURRENT.stream = stream
    yield
    CURRENT.stream = None


def copy_(place, source):
    stream = getattr(CURRENT, "stream", None)
    return stream.issue(place, source) if stream else COPY(place, source)


def drawn(version, sizes, call, rank, ranks):
    torch.manual_seed(call)
    return version.inputs(**sizes, rank=rank, ranks=ranks, device="cpu")


@pytest.fixture
def computed(monkeypatch):
    """computed(name, ranks, without): (answer, right answer) of each rank in several calls in a row; ranks may lag."""
    for name, fake in (("Stream", Copies), ("stream", current), ("current_stream", Products)):
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(torch.Tensor, "copy_", copy_)

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


def test_fused_attention_answers_in_the_shapes_that_are_merged():
    """On a GPU: by torch's own account of its operator, which needs no GPU."""
    q, k, v = (torch.empty(3, length, 16, dtype=torch.bfloat16, device="meta") for length in (5, 10, 10))
    y, log_sum = load(PAIRS["ring_attention"].baseline.path).attend(q, k, v)
    assert (y.shape, log_sum.shape, log_sum.dtype) == ((3, 5, 16), (3, 5), torch.float32)
