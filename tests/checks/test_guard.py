"""What a call may not do: the guards by themselves. (Pairs that try it: tests/liars.)"""

import _thread
import ast
import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import psutil
import pytest
import torch
from samples import one_pair, version, wait_until

from common.checks import device_trace, guards
from common.checks.arrays import private_views, tensors
from common.engine.candidates import make_candidates
from common.engine.inputs import InputSet
from common.pairs.pair import load


def is_poisoned(x):
    return bool(torch.as_tensor(x).isnan().all())


def test_what_a_call_returned_is_overwritten():
    answer = {"a": torch.ones(3), "b": [np.ones(3), torch.ones(2, dtype=torch.int64)], "c": torch.ones(2) > 0}
    guards.poison_answer(answer, {"x": torch.ones(3)})
    assert is_poisoned(answer["a"]) and is_poisoned(answer["b"][0])
    assert answer["b"][1].tolist() == [-1, -1]


def test_an_answer_made_in_inference_mode_is_overwritten_too():
    with torch.inference_mode():
        answer = torch.ones(3)
    guards.poison_answer(answer, {})
    with torch.inference_mode():
        assert is_poisoned(answer)


def test_a_part_of_an_input_is_not_overwritten():
    x = torch.ones(4)
    guards.poison_answer([x[1:], x.view(2, 2)], {"x": x})
    assert x.tolist() == [1, 1, 1, 1]


def test_what_cannot_be_written_is_left_alone():
    frozen = np.ones(3)
    frozen.flags.writeable = False
    guards.poison_answer([torch.ones(1).expand(3), np.broadcast_to(np.ones(1), 3), frozen, "words", None], {})
    assert frozen.tolist() == [1, 1, 1]


def test_own_views_keep_what_is_done_to_them():
    tree = {"x": torch.ones(2, 3), "a": np.ones(3), "parts": [torch.ones(2)], "p": torch.ones(2, requires_grad=True)}
    mine = private_views(tree)
    mine["x"].unsqueeze_(0).requires_grad_()
    mine["a"].shape = (1, 3)
    mine["a"].flags.writeable = False
    mine["parts"].pop()
    assert (tree["x"].shape, tree["x"].requires_grad) == ((2, 3), False)
    assert (tree["a"].shape, tree["a"].flags.writeable, len(tree["parts"])) == ((3,), True, 1)
    assert mine["p"] is tree["p"]  # whose .grad is a part of the answer
    assert mine["x"].data_ptr() == tree["x"].data_ptr()


@pytest.fixture
def sets(tmp_path):
    """Two draws for a pair whose variant has its input in another placement."""
    matrix = 'return {{"x": torch.randn(n, 7, device=device){}, "k": torch.arange(n), "w": torch.rand(3), "w_s": w()}}'
    inputs, helper = (matrix.format(placed) for placed in (".T.contiguous().T", "")), "def w(): return torch.randn(2)"
    pair = one_pair(tmp_path, *(version("return x", "x, k, w, w_s", drawn, helper) for drawn in inputs))
    arms = make_candidates({one.label: load(one.path) for one in pair.versions}, load(pair.baseline.path), ())
    return [InputSet(arms, {"n": 16}, "cpu", seed) for seed in (1, 2)]


def test_before_a_round_every_value_changes_alike_for_every_arm(sets):
    inputs, source = sets
    before = {path: tensor.clone() for path, tensor in tensors(inputs.base)}
    inputs.overwrite(source, random.Random(0))
    after = dict(tensors(inputs.base))
    assert all(bool((after[name] != before[name]).all()) for name in ("x", "w"))
    assert after["k"].equal(dict(tensors(source.base))["k"])  # integers are taken whole
    assert after["w_s"].equal(before["w_s"])
    assert [tree["x"].equal(inputs.pristine["x"]) for tree in inputs.trees] == [True, True]
    assert inputs.violation() is None


def test_values_shrink_or_are_replaced(sets):
    """So that they stay in the range in which they were drawn."""
    inputs, source = sets
    drawn = torch.maximum(inputs.base["x"].abs().max(), source.base["x"].abs().max())
    for _ in range(20):
        inputs.overwrite(source, random.Random(0))
    assert inputs.base["x"].abs().max() <= drawn


def test_company_is_named_once():
    company, end = guards.LeakDetector(), threading.Event()
    thread = threading.Thread(target=end.wait, name="lingers")
    thread.start()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert re.search(rf"threads: lingers.*processes: python.*\b{process.pid}\b", company.find_new())
        assert company.find_new() == ""
    finally:
        end.set()
        thread.join()
        process.communicate(b"\n")


def test_a_thread_that_python_does_not_list_is_company():
    company, end, ended = guards.LeakDetector(), threading.Event(), threading.Event()
    before = len(sys._current_frames())
    _thread.start_new_thread(lambda: end.wait() and ended.set(), ())
    try:
        wait_until(lambda: len(sys._current_frames()) > before)
        assert [company.find_new(), company.find_new()] == ["threads: one without a name", ""]
    finally:
        end.set()
        ended.wait()


def test_a_process_that_has_ended_is_no_company():
    company = guards.LeakDetector()
    process = subprocess.Popen(["true"])
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)  # nobody asks how it ended
    assert company.find_new() == ""
    process.wait()


TRUE = shutil.which("true")
UNTIMELY = {  # event of Python -> a call that raises it alone of those here, and what is said of it
    "import": (partial(__import__, "this"), "imports this"),
    "compile": (lambda: compile("1 + 1", "text", "eval"), "compiles Python code"),
    "exec": (partial(exec, compile("1 + 1", "text", "exec")), "executes new Python code"),
    "subprocess.Popen": (lambda: subprocess.run(["true"], check=True), "starts true"),
    "os.posix_spawn": (lambda: os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0), f"starts {TRUE}"),
    "ctypes.dlopen": (partial(ctypes.CDLL, None), "loads None"),
    "open": (lambda: open(os.devnull, "w").close(), "writes to files"),
}


@pytest.mark.parametrize("event", guards.UNTIMELY_EVENTS)
def test_a_call_is_overheard(event, monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    call, said = UNTIMELY[event]
    assert said in guards.untimely_actions(call)


def test_a_file_that_is_loaded_compiles_no_code(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    np.load(tmp_path / "x.npy")
    assert guards.untimely_actions(lambda: np.load(tmp_path / "x.npy")) == set()
    assert guards.untimely_actions(lambda: ast.literal_eval("[1, 2]")) == set()
    for call in (ast.parse, lambda text: compile(ast.parse(text), "text", "exec")):  # looks like it, and is not
        assert guards.untimely_actions(partial(call, "1 + 1")) == {"compiles Python code"}


def test_allocations_of_a_call_are_counted():
    x, out = torch.randn(2, 1 << 20)
    assert device_trace.trace_call(lambda: torch.mul(x, 2, out=out), "cpu", False).allocated_bytes < 1 << 10
    seen = device_trace.trace_call(lambda: 2 * x + 1 + x, "cpu", False)  # of three, one is free when the third is made
    assert (seen.allocated_bytes, seen.peak_bytes) == pytest.approx((3 * x.nbytes, 2 * x.nbytes), rel=0.01)
