"""What a program of torch's operations asks of host, device and memory: counted exactly, and told by its effect."""

from itertools import count
from types import SimpleNamespace

import pytest
import torch

from common.isolation import worker
from common.learn import device_gates
from common.learn.device_work import BACKWARD, FORWARD, NUMBER, OPTIMIZER, works_of

PROGRAM = """
import torch


def inputs(n=8, device="cpu"):
    return {{"host": torch.ones(3, n, n), "w": torch.ones(n, n, device=device)}}


def run(host, w):
    w = w.clone().requires_grad_()
    {line}
    return w
"""


@pytest.fixture
def path(tmp_path):
    numbers = count()

    def of(line, name="program"):
        file = tmp_path / f"{name}_{next(numbers)}.py"  # Python takes a text of equal length and second for the old one
        file.write_text(PROGRAM.format(line=line), encoding="utf-8")
        return file

    return of


@pytest.fixture
def work(path):
    return lambda line: works_of([path(line)], {}, True, lambda *_: None)[0]


@pytest.mark.parametrize(
    ("line", "waits", "copies"),
    [
        ("w @ w", 0, 0),
        ("w.sum().item()", 1, 0),
        ("bool((w > 0).all()), float(w[0, 0]), int(w[0, 0])", 3, 0),
        ("w.detach().cpu()", 1, 0),
        ("w.detach().tolist()", 1, 0),
        ("torch.empty(8, 8).copy_(w.detach())", 1, 0),
        ("[each.to(w.device) for each in host]", 0, 3),
        ("host.to(w.device)", 0, 1),
        ("torch.empty_like(host, device=w.device).copy_(host)", 0, 1),
        ("torch.tensor([1.0, 2.0], device=w.device)", 0, 1),
        ("torch.arange(8, device=w.device)", 0, 0),
        ("host.sum().item(), host.to(torch.float64), host.cpu()", 0, 0),
        ("torch.optim.AdamW([w], foreach=False)", 0, 0),
    ],
)
def test_waits_and_copies(line, waits, copies, work):
    found = work(line)
    assert (found.waits.total(), found.copies.total()) == (waits, copies)


def test_what_is_waited_for_and_copied_has_its_name(work):
    assert work("w.sum().item(), w.detach().cpu()").waits == {NUMBER: 1, "for a copy of float32 [8, 8]": 1}
    assert work("[each.to(w.device) for each in host]").copies == {"float32 [8, 8]": 3}


def test_operations_by_part_views_left_out(work):
    found = work("(w @ w).T.sum().backward(); torch.optim.SGD([w], lr=0.1).step()").operations
    assert found[FORWARD] == {"clone": 1, "mm": 1, "sum": 1, "ones_like": 1}
    assert found[BACKWARD] == {"mm": 2, "add": 1}
    assert found[OPTIMIZER] == {"_foreach_add_": 1}  # as on a GPU: there an optimizer takes all weights at once


def test_inference_mode_hides_no_operation(work):
    line = "exec('with torch.inference_mode(): torch.nn.functional.linear(w, w)', {'torch': torch, 'w': w})"
    assert work(line).operations[FORWARD] == {"clone": 1, "mm": 1}  # the mode is entered once more for it
    graphs = []
    compiled = torch.compile(lambda x: x + 1, backend=lambda graph, inputs: graphs.append(graph) or graph.forward)
    assert compiled(torch.ones(2)).tolist() == [2, 2] and len(graphs) == 1  # afterwards all is as before


@pytest.mark.parametrize(
    ("line", "unused"),
    [
        ("(w * w).sum().backward()", 0),
        ("(w * w).sum()", 2 * 8 * 8 * 4),
        ("exec('with torch.no_grad(): (w * w).sum()', {'torch': torch, 'w': w})", 0),
    ],
)
def test_bytes_for_a_backward_pass_that_never_comes(line, unused, work):
    assert work(line).unused.total() == unused


def test_the_peak_is_what_exists_at_a_time(work):
    one = 8 * 8 * 4
    assert work("[w.detach() + 1 for _ in range(3)]").peak_bytes == 4 * one  # the copy of w, and three
    released = work("sum(float((w.detach() + 1)[0, 0]) for _ in range(3))")
    assert released.peak_bytes <= 3 * one
    assert work("[w.detach() + 1 for _ in range(3)]").at_peak == {"float32 [8, 8]": (4 * one, 4)}


def pair(own, solution):
    return SimpleNamespace(
        variants=[SimpleNamespace(path=own)], baseline=SimpleNamespace(path=solution), sizes={"count": {}}
    )


@pytest.mark.parametrize(
    ("wanted", "line", "says"),
    [
        ({"waits": 0}, "w.sum().item()", "waits for the device once in a call, where at most 0 pass: 1 for a number"),
        ({"copies": 1}, "[each.to(w.device) for each in host]", "copies to the device 3 times in a call, where"),
        ({"operations": {"forward": 3}}, "[w + 1 for _ in range(9)]", "10 operations in a call, where at most 3 pass"),
        ({"unused": 0}, "(w * w).sum()", "512 bytes are kept for a backward pass that never comes"),
        ({"peak": 1.5}, "[w.detach() + 1 for _ in range(9)]", "9 more|at most 768 bytes pass. The most then: 10"),
    ],
)  # fmt: skip
def test_a_gate_names_the_effect_that_is_left(wanted, line, says, path):
    gates = list(device_gates.gates(wanted, pair(path(line), path("w.detach() + 1", "solution"))))
    assert [gate.passed for gate in gates] == [False]
    assert any(each in gates[0].text for each in says.split("|")), gates[0].text
    (right,) = device_gates.gates(wanted, pair(path("w.detach() + 1"), path("w.detach() + 1", "solution")))
    assert right.passed, right.text


@pytest.mark.parametrize(("line", "waits_too"), [("host.to(w.device)", True), ("w + 1", False)])
def test_a_copy_is_told_to_wait_too(line, waits_too, path):
    (gate,) = device_gates.gates({"waits": 0, "copies": 1}, pair(path(line), None))
    assert gate.passed and ("A copy waits for the device, too" in gate.text) is waits_too


def test_a_program_that_fails_is_told_and_no_gate_is_asked_for_nothing(path, monkeypatch):
    (gate,) = device_gates.gates({"waits": 0}, pair(path("w[9, 9].item()"), path("w", "solution")))
    assert gate.passed is False and "its work cannot be counted: IndexError" in gate.text
    monkeypatch.setattr(worker, "call", None)
    assert [*device_gates.gates({"sectors": 1.0}, pair(None, None))] == []
