"""The pilot: whose noise decides the number of blocks."""

from itertools import cycle
from types import SimpleNamespace

import pytest

from common.engine.pilot import Pace, _noise
from common.record.result import CONTROL

SECONDS = {"baseline": 3.0, CONTROL: 3.0, "optimized": 1.0, "library": 2.0}
QUIET, NOISY = (1.0, 1.0), (1.0, 1.1, 1.1, 1.0)  # factors of an arm's time from sample to sample


def noise(**factors):
    """Of these arms; all are quiet, except for those with other factors."""
    following = {label: cycle(factors.get(label, QUIET)) for label in SECONDS}
    calls = {label: lambda label=label: SECONDS[label] * next(following[label]) for label in SECONDS}
    clock = SimpleNamespace(sample=lambda calls, _: SimpleNamespace(seconds=calls[0]()))
    return _noise(clock, calls, {label: Pace(seconds, 0.0) for label, seconds in SECONDS.items()}, 6)


def test_steady_arms_have_no_noise():
    assert noise() == 0


@pytest.mark.parametrize("label", ["baseline", CONTROL, "optimized"])
def test_the_noise_is_that_of_the_baseline_or_of_the_shortest_arm(label):
    assert noise(**{label: NOISY}) > 0.04


def test_the_noisier_of_both_counts():
    assert noise(baseline=(1.0, 1.01, 1.01, 1.0), optimized=NOISY) == noise(optimized=NOISY)


def test_an_arm_in_between_is_not_asked():
    assert noise(library=NOISY) == 0
