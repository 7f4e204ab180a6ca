"""What the tests of ch6/scale.py share: its modules, links, records whose times are made of known links."""

import json
from importlib import import_module

import pytest

from common.pairs.pair import ROOT

SIZES = [1 << power for power in range(12, 28, 2)]


@pytest.fixture
def module(monkeypatch):
    """module(name): a module of chapter 6."""
    monkeypatch.syspath_prepend(str(ROOT / "ch6"))
    return import_module


@pytest.fixture
def alpha_beta(module):
    return module("alpha_beta")


@pytest.fixture
def known(module):
    return module("configurations")


@pytest.fixture
def links(alpha_beta):
    """8 GPUs in a machine: 1 us and 100 GB/s within, 10 us and 10 GB/s between."""
    within, between = alpha_beta.Link(1e-6, 100e9), alpha_beta.Link(10e-6, 10e9)
    return alpha_beta.Links(8, {"send_recv": within}, {"send_recv": between})


@pytest.fixture
def record(alpha_beta):
    """record(path, ranks, ...): a file of collectives.py whose times are those of rings with these links."""

    def of(path, ranks, alpha=20e-6, beta=5e9, **changes):
        names, link = [*alpha_beta.HALVES, "broadcast", "send_recv"], alpha_beta.Link(alpha, beta)
        times = {name: [[size, alpha_beta.ring(name, size, ranks, link)] for size in SIZES] for name in names}
        data = {"ranks": ranks, "backend": "nccl", "device": "GPU", "times": times} | changes
        path.write_text(json.dumps(data))
        return path

    return of
