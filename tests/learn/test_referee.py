"""A judge of benchmarks: it has its time for each case, and one thread, and what is too slow is not called hung.

It knows the cases by what they do: not by their names, their docstrings, their order, or what the grader knows.
"""

import re

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


CALLED = "Before that `is_honest` called it"
RECOGNIZES = {
    "its file": "run.__code__.co_filename + inspect.getsource(inspect.getmodule(run))",
    "its module": "run.__module__ + str(run.__globals__.get('__doc__')) + str(run.__globals__.get('__file__'))",
    "what the grader knows": "''.join(str(info.frame.f_locals) for info in inspect.stack()[1:])",
}


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


@pytest.mark.rest
def test_a_judge_has_its_time_for_each_case(judged):
    gates = judged("time.sleep(1.0)")
    assert [gate.text for gate in gates] == ["3 cases judged rightly"], gates


@pytest.mark.rest
@pytest.mark.parametrize(("wait", "says"), [("while True: pass", "too slow, "), ("time.sleep(600)", "hung: ")])
def test_the_case_is_named_in_which_it_hangs_or_is_too_slow(wait, says, judged):
    (gate,) = judged(wait)
    assert gate.passed is False and re.match(f"(honest_a|honest_b|mutant_c): {says}", gate.text)


@pytest.mark.parametrize("text", RECOGNIZES.values(), ids=[*RECOGNIZES])
def test_a_case_is_not_recognized_by_what_it_is_called(text, of_cases):
    gate = of_cases(f"import inspect\n\ndef is_honest(run):\n    return 'truly' in {text} or 'honest_' in {text}")
    assert (gate.passed, gate.name, gate.text) == (
        False,
        "honest",
        f"is refused, though it truly does so. {CALLED} 0 times",
    )


def test_a_case_is_not_recognized_by_its_place(of_cases):
    """Half of all cases, the first ones by name: one order of 924 is like that."""
    gate = of_cases("calls = []\n\ndef is_honest(run):\n    calls.append(run)\n    return len(calls) <= 6")
    assert gate.passed is False


def test_a_judge_that_calls_them_is_right(of_cases):
    gate = of_cases("def is_honest(run):\n    return run()")
    assert (gate.passed, gate.text) == (True, "12 cases judged rightly")


@pytest.mark.parametrize(
    ("body", "gate", "says"),
    [
        ("return run() and run() and False", "honest", f"is refused, though it truly does so. {CALLED} 2 times"),
        ("return run() or True", "mutant", f"passes, though it never does so. {CALLED} once"),
    ],
)
def test_a_wrong_verdict_says_after_how_many_calls_it_came(body, gate, says, of_cases):
    found = of_cases(f"def is_honest(run):\n    {body}")
    assert (found.passed, found.name, found.text) == (False, gate, says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("is_honest = None", "the file has no function `is_honest`"),
        ("def is_honest(run):\n    return run() or 1 / 0", "mutant_g: ZeroDivisionError: division by zero"),
    ],
)
def test_what_a_judge_lacks_or_raises_is_told_of_the_first_case(text, says, of_cases):
    gate = of_cases(text)
    assert (gate.passed, gate.name, gate.text) == (False, "referee", says)


@pytest.fixture
def of_cases(tmp_path):
    """of_cases(text): the gate of this judge, of six honest cases and six that lie."""
    (tmp_path / "cases").mkdir()
    for name in "abcdefghijkl":
        kind, word = ("honest", "truly") if name < "g" else ("mutant", "never")
        text = f'"""{word} does so"""\n\nfrom helper import answer\n\ndef run():\n    return answer({name!r})\n'
        (tmp_path / f"cases/{kind}_{name}.py").write_text(text)
    (tmp_path / "cases/helper.py").write_text("def answer(name):\n    return name < 'g'\n")
    exercise = Exercise("ch1/x", tmp_path, "", "referee", "", "", "", (), 5, 1)

    def of(text):
        (path := tmp_path / "judge.py").write_text(text)
        (gate,) = answer_gates.gates(exercise, path)
        return gate

    return of
