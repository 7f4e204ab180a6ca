"""Global state is put back, and named, whichever part of it a version has changed."""

import re

import pytest
import torch
from liars import state

import common.engine.reference  # noqa: F401  which one of them changes
from common.checks.global_state import GlobalState, _switches

LIARS = {**state.FAMILIES["leaves_settings"], **state.LEAVES_SWITCHES}
HERE = [*LIARS, *(pytest.param(name, marks=pytest.mark.skip(why)) for name, why in state.NOT_HERE.items())]


@pytest.mark.parametrize("name", HERE)
def test_a_changed_setting_is_named_and_put_back(name):
    """Each has its liar (liars/test_liars.py), which is called here as any function is."""
    watch, liar = GlobalState(), {}
    exec(LIARS[name].versions()["liar"][0], liar)
    liar["run"](torch.ones(3), torch.ones(1))
    assert re.search(LIARS[name].reason, f"changes global state: {watch.restore()}")
    assert watch.restore() == ""  # all is as it was found


OTHERS = {"cudnn_depthwise_kernel": "native"}  # than they are, of switches that are neither on nor off
NOT_HERE = ("cpu_allow_fp16_reduced_precision_reduction", "linalg_preferred_backend", "blas_preferred_backend")


@pytest.mark.parametrize("name", sorted(_switches().keys() - set(NOT_HERE)))
def test_every_switch_of_torch_is_named_and_put_back(name):
    watch, (read, write) = GlobalState(), _switches()[name]
    before = read()
    if isinstance(before, tuple):
        write(not before[0], before[1])
    else:
        write(OTHERS.get(name, not before))
    assert watch.restore().startswith(f"{name} {before} -> ")
    assert read() == before


def test_a_seed_of_the_harness_is_no_change():
    watch = GlobalState()
    torch.manual_seed(1)
    watch.accept_seed()
    torch.rand(3)  # drawing numbers is none either
    assert watch.restore() == ""


def test_compiling_changes_nothing_of_note():
    watch = GlobalState()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    assert watch.restore() == ""
