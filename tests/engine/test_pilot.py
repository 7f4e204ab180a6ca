"""The pilot: whose noise decides the number of blocks."""

import math
from itertools import cycle
from types import SimpleNamespace

import pytest

from common.engine.plan import CallTiming, _noise
from common.record.result import CONTROL

SECONDS = {"baseline": 3.0, CONTROL: 3.0, "optimized": 1.0, "library": 2.0}
QUIET, NOISY = (1.0, 1.0), (1.0, 1.1, 1.1, 1.0)  # factors of an arm's time from sample to sample
TIMES, CALLS = 6, 2


def noise(seconds=SECONDS, attempt=lambda label, action, *arguments: action(*arguments), **factors):
    """The noise that the pilot finds. An arm is quiet unless its factors are given."""
    following = {label: cycle(factors.get(label, QUIET)) for label in seconds}
    calls = {label: lambda label=label: label for label in seconds}
    paces = {label: CallTiming(each, host_s=each / 10, calls=CALLS) for label, each in seconds.items()}

    def sample(several, host_s):
        (label,) = {call() for call in several}
        assert len(several) == CALLS and host_s == paces[label].host_s
        return SimpleNamespace(seconds=paces[label].seconds * next(following[label]))

    return _noise(SimpleNamespace(attempt=attempt), SimpleNamespace(sample=sample), calls, paces, TIMES)


def test_steady_arms_have_no_noise():
    assert noise() == 0


@pytest.mark.parametrize("label", ["baseline", CONTROL])
def test_the_baseline_is_compared_with_its_control(label):
    assert noise(**{label: NOISY}) > 0.04


def test_the_shortest_arm_is_compared_with_itself():
    """+ log 1.1 and - log 1.1 in turn."""
    assert noise(optimized=NOISY) == pytest.approx(math.log(1.1) * math.sqrt(TIMES / (TIMES - 1)))


def test_the_noisier_of_both_counts():
    assert noise(baseline=(1.0, 1.01, 1.01, 1.0), optimized=NOISY) == noise(optimized=NOISY)


def test_an_arm_in_between_is_not_asked():
    assert noise(library=NOISY) == 0


def test_a_library_may_be_the_shortest_arm():
    assert noise({**SECONDS, "library": 0.5}, library=NOISY) == pytest.approx(noise(optimized=NOISY))


def test_a_baseline_that_is_the_shortest_arm_is_asked_once():
    asked = []
    noise({**SECONDS, "baseline": 0.5}, lambda label, action, *arguments: asked.append(label) or action(*arguments))
    assert asked == ["baseline", CONTROL] * TIMES


def test_a_version_that_raises_is_disqualified_and_ends_the_question():
    asked = []

    def attempt(label, action, *arguments):
        asked.append(label)
        return None if label == "optimized" else action(*arguments)

    assert noise(attempt=attempt, baseline=NOISY) == 0
    assert asked == ["baseline", CONTROL, "optimized"]
