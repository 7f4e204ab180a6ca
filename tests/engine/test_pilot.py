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


def test_the_noise_is_that_of_the_baseline_and_its_control_or_of_the_shortest_arm():
    assert noise() == noise(library=NOISY) == 0  # an arm in between is not asked
    assert min(noise(**{label: NOISY}) for label in ("baseline", CONTROL)) > 0.04
    by_itself = pytest.approx(math.log(1.1) * math.sqrt(TIMES / (TIMES - 1)))  # + log 1.1 and - log 1.1 in turn
    assert noise(optimized=NOISY) == by_itself
    assert noise(optimized=NOISY, baseline=(1.0, 1.01, 1.01, 1.0)) == noise(optimized=NOISY)  # the noisier counts
    assert noise({**SECONDS, "library": 0.5}, library=NOISY) == by_itself


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
