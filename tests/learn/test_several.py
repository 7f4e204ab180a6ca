"""Exercises of several processes: what each sends is counted, and how it fails is told in its own file's words."""

import re

import pytest
import torch

from common.isolation import worker
from common.learn import errors, multi_process
from common.learn.errors import BROKE, WAITS
from common.learn.exercise import find
from common.learn.gate import NOT_YET
from common.learn.grade import grade
from common.learn.multi_process import Sends

pytestmark = pytest.mark.xdist_group("ranks")
RING = find("ch6/ring")
WANTED = {"collectives": 1, "sends": 2, "link": 1.0}
OURS = Sends(100, 2, 1, ("allreduce",), False)
PROGRAM = """
import torch
import torch.distributed as dist

def inputs(n, rank, ranks, device="cuda"):
    return {"x": torch.zeros(n, device=device)}

def uneven(x):
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.send(x, 1)
    if dist.get_rank() == 1:
        dist.recv(torch.empty_like(x), 0)
        dist.recv(torch.empty_like(x), 0)
    dist.barrier()
    return x

def summed(x):
    total = x.clone()
    dist.all_reduce(total)
    return total

def unread(x):
    return torch.empty_like(x)
"""


@pytest.fixture
def own(tmp_path):
    """own(old, new): what is said of a right ring, of chunks that differ in length, with a change: a reader's file."""

    def of(old, new):
        text = (RING.folder / "alternatives/uneven_chunks.py").read_text(encoding="utf-8")
        assert old in text
        (tmp_path / "ring.py").write_text(text.replace(old, new), encoding="utf-8")
        found = grade(RING, tmp_path / "ring.py")
        assert found.status == NOT_YET
        return found.gates[-1].text

    return of


def count(path, line):
    runs = ("uneven", "summed", "unread")
    return multi_process.count([(path, run) for run in runs], [{"n": 6}, {"n": 9}], 3, line)


@pytest.mark.rest
def test_the_most_of_all_processes_is_counted(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    assert worker.call(count, tmp_path / "program.py", deadline_s=20.0) == [
        [
            Sends(2 * 4 * n, 2, 0, (), False),
            Sends(2 * 2 * 4 * n // 3, 0, 1, ("allreduce",), False),
            Sends(0, 0, 0, (), True),
        ]
        for n in (6, 9)
    ]


@pytest.mark.parametrize(
    ("own", "passed", "said"),
    [
        (OURS, True, r"sends 100 bytes; collectives: 1 \(allreduce\), sends: 2"),
        (Sends(90, 0, 1, ("allgather",), False), True, "sends 90 bytes"),
        (Sends(100, 0, 2, ("allreduce",), False), False, "At most 1 collectives pass"),
        (Sends(100, 3, 0, (), False), False, "At most 2 sends pass"),
        (Sends(150, 2, 0, (), False), False, "1.50x of the solution's bytes"),
        (Sends(0, 0, 0, (), False), False, "0.00x of the solution's bytes"),
    ],
)
def test_what_is_sent_beyond_a_gate_is_named(own, passed, said):
    for found in ([(OURS, own)], [(OURS, OURS), (OURS, own)]):
        gate = multi_process.gate(WANTED, found)
        assert gate.passed is passed and re.search(said, gate.text), gate.text


def test_a_gate_that_is_not_given_is_not_judged():
    for wanted, sends in (({"link": 1.0}, (100, 9, 9)), ({"collectives": 1}, (900, 9, 1))):
        assert multi_process.gate(wanted, [(OURS, Sends(*sends, ("allreduce",), False))]).passed


def test_a_process_that_raises_is_named_with_its_line(own):
    said = own("    total = x.clone()\n", "    total = x.clone()\n    assert rank != 2, 'no luck'\n")
    assert said.startswith("rank 2: AssertionError: no luck (ring.py:")


@pytest.mark.rest
def test_a_transfer_that_nothing_keeps_is_named_with_its_line(own, monkeypatch):
    monkeypatch.setattr(multi_process, "DEADLINE_S", 5.0)
    old = "        exchange(chunks[(rank - step) % ranks], right, received, left)"
    said = own(old, "        dist.isend(chunks[(rank - step) % ranks], right)\n        dist.recv(received, left)")
    assert "`dist.isend(chunks[(rank - step) % ranks], right)`: nothing keeps what this returns" in said
    assert WAITS not in said and re.search(r"line \d+, ", said)


@pytest.mark.rest
def test_what_holds_for_three_processes_only_is_refused(own):
    said = own("ranks, rank = dist.get_world_size(), dist.get_rank()", "ranks, rank = 3, dist.get_rank()")
    assert said.startswith("right in 3 processes, but not in 4") and "dist.get_world_size()" in said


@pytest.mark.parametrize(
    ("found", "right", "is_close"),
    [
        ([1.0, 100.0], [2.0, 100.0], True),  # bits of a sum of 16
        ([1, 100], [2, 100], False),
        ([1.0, 100.0], [4.0, 100.0], False),
        ([float("nan")], [1.0], False),
        ([], [], True),  # a process that has no part
        ([1.0], [1.0, 1.0], False),
    ],
)
def test_answers_of_other_processes_are_compared_by_their_type(found, right, is_close):
    assert multi_process._close(torch.tensor(found), torch.tensor(right)) is is_close


TWICE = "first = dist.all_reduce(total.clone(), async_op=True)\n    first.wait()\n    first.wait()\n    "


@pytest.mark.parametrize("before", ["", "dist.barrier()\n    ", TWICE])
def test_a_sum_that_is_started_and_not_waited_for_is_counted(before, tmp_path):
    program = PROGRAM.replace("dist.all_reduce(total)", f"{before}work = dist.all_reduce(total, async_op=True)")
    (tmp_path / "program.py").write_text(program)
    (_, unwaited, _), *_ = worker.call(count, tmp_path / "program.py", deadline_s=20.0)
    assert unwaited.unwaited == 1 and errors.unwaited_text(1).startswith(". Of the transfers that a call starts, 1 is")
    assert errors.unwaited_text(0) == ""


@pytest.mark.rest
def test_a_process_that_comes_back_alone_is_named(own, monkeypatch):
    monkeypatch.setattr(multi_process, "DEADLINE_S", 5.0)
    said = own("    total = x.clone()\n", "    total = x.clone()\n    if rank == 1:\n        return total\n")
    assert "hung: " in said and "rank 1 has come back" in said and "work.wait()" in said
    assert "ring.py:" in said and "optimized_" not in said and said.endswith(WAITS)


def test_a_message_that_is_too_long_is_told_in_the_courses_words(own):
    said = own("mine = chunks[(rank - step - 1) % ranks]", "mine = chunks[(rank - step + 1) % ranks]")
    broke = rf"the connection to another process broke \(ring.py:\d+\){re.escape(BROKE)}"
    assert re.fullmatch(rf"rank \d: ({broke}|killed by SIGABRT: often a message is longer than its buffer, .*)", said)
