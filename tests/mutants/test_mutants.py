"""Wrong versions of every lesson are rejected: some are judged again, of all the committed results are looked at."""

import re
from collections import Counter
from functools import cache

import pytest

from common.machine.device import default_device, has_gpu
from common.pairs.pair import ROOT, chapters, discover
from mutants.edits import edited
from mutants.lessons import groups, judge, mutants
from mutants.results import NO_REASON, Group, Wrong, load

AGAIN = [  # for which the interpreter needs least
    "ch1 batch_size: the last samples, no whole batch, are not computed", "ch1 coalescing: the last element is masked",
    "ch1 preallocation: x + 3 is rounded to float16", "ch2 transpose: x is taken for square",
    "ch3 add: y is read as if it had no gaps", "ch3 softmax: no maximum is subtracted",
]  # fmt: skip


@cache
def all_groups():
    """By subject: what several tests look at, but collecting them does not."""
    return {group.subject: group for group in groups()}


def test_every_pair_has_two_that_are_rejected_and_no_two_are_called_alike():
    of_pair = Counter(key for key, wrong in mutants().items() for mutant in wrong if not mutant.passes)
    assert {subject: len(group.wrong) for subject, group in all_groups().items()} == {
        f"{chapter} {name}": len(wrong) for (chapter, name), wrong in mutants().items()
    }
    pairs = [(path.name, pair.name) for path in chapters().values() for pair in discover(path) if pair.ranks == 1]
    few = [(chapter, name) for chapter, name in pairs if of_pair[chapter, name] < 2]
    lacking = [f"two of {name} in tests/mutants/{chapter}.py" for chapter, name in few]
    assert not lacking, "write wrong versions: " + ", ".join(lacking)


def needs_a_gpu(chapter, name, mutant):
    (pair,) = discover(ROOT / chapter, name)
    versions = {version.label: version for version in pair.versions}
    return versions["baseline"].needs_cuda or versions[f"optimized/{mutant.of}".rstrip("/")].needs_cuda


@pytest.mark.parametrize(("chapter", "name"), mutants())
def test_the_committed_results_are_of_it_as_it_is_and_reject_it(chapter, name):
    group, results = all_groups()[f"{chapter} {name}"], load()
    assert group.problems(results) == {}
    stale = [mutant for mutant in mutants()[chapter, name] if mutant.what in group.stale(results)]
    here = [m for m in stale if group.key(m.what) in results or not needs_a_gpu(chapter, name, m)]
    assert [mutant.what for mutant in here] == [], "new, or changed since: make mutants"
    if stale:
        pytest.xfail("not judged yet: make mutants on a GPU")


@pytest.mark.parametrize("key", AGAIN)
def test_it_is_rejected(key):
    subject, what = key.split(": ")
    ((_, caught, message),) = all_groups()[subject].judge([what], "cpu")
    assert caught, message


@pytest.mark.gpu
@pytest.mark.parametrize(("chapter", "name"), mutants())
def test_all_of_a_pair_are_rejected_on_a_gpu(chapter, name):
    assert has_gpu()
    wrong = [mutant.what for mutant in mutants()[chapter, name] if not (mutant.passes or mutant.on_a_gpu)]
    judgements = [*judge(chapter, name, wrong, default_device())]
    assert [(what, message) for what, caught, message in judgements if not caught] == []
    if len(judgements) < len(wrong):
        pytest.skip("this GPU cannot run it")


@pytest.mark.parametrize(("find", "times"), [("b", 0), ("a", 2)])
def test_an_edit_of_what_does_not_stand_there_once_is_an_error_of_one_line(find, times):
    with pytest.raises(ValueError, match=f"^add, wrong: '{find}' stands there {times} times, not once$"):
        edited("a a", [(find, "c")], "add, wrong")


@pytest.mark.parametrize(
    ("wrong", "on", "caught", "message", "problem"),
    [
        (Wrong("h"), "cpu", True, "right: no", ""),
        (Wrong("h"), "cpu", False, "right: yes", re.escape(NO_REASON)),
        (Wrong("h", passes="why"), "cpu", False, "right: yes", ""),
        (Wrong("h", passes="why"), "cpu", True, "right: no", "a reason is given why it passes, but it is caught"),
        (Wrong("h", on_a_gpu="why"), "cuda", False, "right: yes", ""),
        (Wrong("h", on_a_gpu="why"), "cpu", False, "right: yes", re.escape(NO_REASON)),
        (Wrong("h", "right: 3 of \\d"), "cpu", True, "right: at size check: 3 of 9", ""),
        (Wrong("h", "right: 3 of \\d"), "cpu", True, "code: 3 of 9", "it has to get 'right: 3 .*, and gets 'code: .*"),
        (Wrong("h", "right: ^3 of 9"), "cpu", True, "right: not 3 of 9", "it has to get .*, and gets .* 3 of 9'"),
    ],
)
def test_a_result_that_is_not_what_it_has_to_be_is_a_problem(wrong, on, caught, message, problem):
    group = Group("ch0 x", {"a": wrong}, judge=lambda names, device: [(name, caught, message) for name in names])
    results = dict(group.results(["a"], f"{on}:0"))
    assert group.stale(results) == [] and group.stale({}) == ["a"] and group.problems({}) == {}
    assert re.fullmatch(problem, group.problems(results).get("a", ""))
