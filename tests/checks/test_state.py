"""Global state is put back, and named, whichever part of it a version has changed."""

import re
from pkgutil import resolve_name

import pytest
import torch
from liars import state

from common.checks.global_state import Watch

LIARS = {**state.FAMILIES["leaves_settings"], **state.LEAVES_SWITCHES, **state.LEAVES_TOOLS_ON}
HERE = [*LIARS, *(pytest.param(name, marks=pytest.mark.skip(why)) for name, why in state.NOT_HERE.items())]


@pytest.mark.parametrize("name", HERE)
def test_a_changed_setting_is_named_and_put_back(name):
    """Each has its liar (liars/test_liars.py), which is called here as any function is."""
    watch, liar = Watch(), {}
    exec(LIARS[name].versions()["liar"][0], liar)
    liar["run"](torch.ones(3), torch.ones(1))
    assert re.search(LIARS[name].reason, f"changes global state: {watch.restore()}")
    assert watch.restore() == ""  # all is as it was found


REPLACEABLE = [
    "time.perf_counter", "torch.add", "torch.cuda.synchronize", "torch.cuda.Event.elapsed_time",
    "torch.cuda.CUDAGraph.replay",
    "torch.Tensor.clone",  # which hides the inherited one
    "torch.Tensor.__mul__", "torch.nn.functional.relu", "numpy.matmul", "builtins.sum",
]  # fmt: skip


@pytest.mark.parametrize("path", REPLACEABLE)
def test_a_replaced_function_is_named_and_put_back(path):
    watch, before, (home, _, name) = Watch(), resolve_name(path), path.rpartition(".")
    setattr(resolve_name(home), name, lambda *arguments: None)
    assert watch.restore() == f"{path} was replaced"
    assert resolve_name(path) is before
    assert watch.restore() == ""


def test_what_is_new_or_private_is_nobodys_business():
    watch = Watch()
    torch.something_new, torch.cuda._something_private = len, len
    try:
        assert watch.restore() == ""
    finally:
        del torch.something_new, torch.cuda._something_private


def test_a_seed_of_the_harness_is_no_change():
    watch = Watch()
    torch.manual_seed(1)
    watch.seeded()
    torch.rand(3)  # drawing numbers is none either
    assert watch.restore() == ""


def test_compiling_changes_nothing_of_note():
    watch = Watch()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    assert watch.restore() == ""
