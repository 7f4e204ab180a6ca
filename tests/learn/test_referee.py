"""A judge of benchmarks: it has its time for each case, and one thread, and what is too slow is not called hung."""

import pytest

from common.learn import answer_gates
from common.learn.exercise import Exercise

JUDGE = """
import time, torch

def is_honest(run):
    assert torch.get_num_threads() == 1
    {wait}
    return run()
"""


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """judged(wait): the gates of a judge that waits so in each of three cases, with two seconds for each."""
    monkeypatch.setattr(answer_gates, "DEADLINE_S", 2.0)
    (tmp_path / "cases").mkdir()
    for name, answer in {"honest_a": True, "honest_b": True, "mutant_c": False}.items():
        (tmp_path / f"cases/{name}.py").write_text(f'"""does so"""\n\ndef run():\n    return {answer}\n')
    exercise = Exercise("ch1/x", tmp_path, "", "referee", "", "", "", (), 5, 1)

    def of(wait):
        (path := tmp_path / "judge.py").write_text(JUDGE.format(wait=wait))
        return [*answer_gates.gates(exercise, path)]

    return of


def test_a_judge_has_its_time_for_each_case(judged):
    gates = judged("time.sleep(1.0)")
    assert [gate.text for gate in gates] == ["3 benchmarks judged rightly"], gates


@pytest.mark.parametrize(("wait", "says"), [("while True: pass", "too slow, "), ("time.sleep(600)", "hung: ")])
def test_the_case_is_named_in_which_it_hangs_or_is_too_slow(wait, says, judged):
    (gate,) = judged(wait)
    assert gate.passed is False and gate.text.startswith(f"honest_a: {says}")
