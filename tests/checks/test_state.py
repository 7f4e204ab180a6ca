"""Global state is put back, and named, whichever part of it a version has changed."""

import os
import signal
import sys
import time
import tracemalloc

import numpy as np
import pytest
import torch

from common.checks.global_state import Watch
from common.checks.settings import SETTINGS

CHANGES = {  # setting -> what changes it
    "the precision of float32 products": lambda: torch.set_float32_matmul_precision("high"),
    "torch.backends.cudnn.benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "torch.backends.cudnn.deterministic": lambda: setattr(torch.backends.cudnn, "deterministic", True),
    "torch.backends.cudnn.enabled": lambda: setattr(torch.backends.cudnn, "enabled", False),
    "reduced precision in fp16 products": lambda: setattr(
        torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False
    ),
    "reduced precision in bf16 products": lambda: setattr(
        torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False
    ),
    "flash attention": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "memory-efficient attention": lambda: torch.backends.cuda.enable_mem_efficient_sdp(False),
    "plain attention": lambda: torch.backends.cuda.enable_math_sdp(False),
    "cuDNN attention": lambda: torch.backends.cuda.enable_cudnn_sdp(not torch.backends.cuda.cudnn_sdp_enabled()),
    "the number of threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "the default dtype": lambda: torch.set_default_dtype(torch.float64),
    "the default device": lambda: torch.set_default_device("meta"),
    "grad mode": lambda: torch.set_grad_enabled(False),
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True),
    "modes of torch that were entered": lambda: torch.device("meta").__enter__(),
    "torch's profiler": lambda: torch.autograd.profiler.profile(use_kineto=True).__enter__(),
    "tracing of Python": lambda: sys.setprofile(lambda *event: None),
    "tracing of memory": tracemalloc.start,
    "oneDNN": lambda: torch.backends.mkldnn.set_flags(False),
    "NumPy's error handling": lambda: np.seterr(all="raise"),
    "autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True),
    "flushing of denormals": lambda: torch.set_flush_denormal(True),
    "the random seed": lambda: torch.manual_seed(torch.initial_seed() + 1),
    "garbage collection": lambda: __import__("gc").disable(),
    "environment variables": lambda: os.environ.update(SPEED_OF_LIGHT="1"),
    "an alarm": lambda: signal.setitimer(signal.ITIMER_REAL, 1000),
    "the cores it may use": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
}
NEEDS_CUDA = {"the current stream"}


def test_every_setting_has_a_change_that_is_tried():
    assert SETTINGS.keys() - NEEDS_CUDA == CHANGES.keys() & SETTINGS.keys()


@pytest.mark.parametrize("name", [name for name in CHANGES if name in SETTINGS])
def test_a_changed_setting_is_named_and_put_back(name):
    if name == "the cores it may use" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("this machine has one core")
    if name == "flushing of denormals" and not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush denormals")
    watch, before = Watch(), SETTINGS[name][0]()
    CHANGES[name]()
    assert SETTINGS[name][0]() != before
    assert name in watch.restore()
    assert SETTINGS[name][0]() == before
    assert watch.restore() == ""


REPLACEMENTS = [
    (time, "perf_counter", "time.perf_counter"),
    (torch, "add", "torch.add"),
    (torch.cuda, "synchronize", "torch.cuda.synchronize"),
    (torch.cuda.Event, "elapsed_time", "torch.cuda.Event.elapsed_time"),
    (torch.cuda.CUDAGraph, "replay", "torch.cuda.CUDAGraph.replay"),
    (torch.Tensor, "clone", "torch.Tensor.clone"),  # which hides the inherited one
    (torch.Tensor, "__mul__", "torch.Tensor.__mul__"),
    (torch.nn.functional, "relu", "torch.nn.functional.relu"),
    (np, "matmul", "numpy.matmul"),
    (__import__("builtins"), "sum", "builtins.sum"),
]


@pytest.mark.parametrize(("home", "name", "said"), REPLACEMENTS, ids=[said for *_, said in REPLACEMENTS])
def test_a_replaced_function_is_named_and_put_back(home, name, said):
    watch, before = Watch(), getattr(home, name)
    setattr(home, name, lambda *arguments: None)
    assert watch.restore() == f"{said} was replaced"
    assert getattr(home, name) is before
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
