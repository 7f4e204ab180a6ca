"""What is concluded about a version, as data: a verdict, and the causes of it. Words are made in common/show/words.py.

A new verdict or cause is one line here and one line there.
"""

import math
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from typing import Any


class Verdict(StrEnum):
    """In the order of a tally."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    UNSURE = "unsure"
    TOO_SHORT = "too short"
    VERIFIED = "verified"
    SKIPPED = "skipped"
    INVALID = "invalid"
    CRASHED = "crashed"


WITH_SPEEDUP = (Verdict.FASTER, Verdict.SLOWER, Verdict.SAME, Verdict.UNSURE)  # come with a speedup
FAILED = (Verdict.INVALID, Verdict.CRASHED)
UNTIMED = (Verdict.VERIFIED, Verdict.TOO_SHORT)  # right, but without a speedup


class Cause(StrEnum):
    """Why a verdict is what it is, or what is worth noting beside a time. Facts of each: see `words.WORDS`."""

    # a wrong answer; further facts say where (`Where`)
    WRONG_ELEMENT = auto()
    WRONG_SPECIAL = auto()
    WRONG_INTEGERS = auto()
    WRONG_SHARE = auto()
    WRONG_RMS = auto()
    WRONG_DISTANCE = auto()
    WRONG_COUNT = auto()
    WRONG_SHAPE = auto()
    WRONG_SHAPES = auto()
    WRONG_DTYPE = auto()
    OTHER_DTYPE = auto()
    OTHER_KIND = auto()
    OTHER_DEVICE = auto()
    OTHER_GRADIENTS = auto()
    NOT_PLAIN = auto()
    # a check that proves nothing
    PASSES_WRONG = auto()
    EXPECTS_NAN = auto()
    ONLY_WEIGHTS = auto()
    BAD_REFERENCE = auto()
    NOT_IN_FLOAT64 = auto()
    # what a call may not do
    RETURNS_INPUT = auto()
    DROPS_GRADIENTS = auto()
    LAZY_ANSWER = auto()
    MEMORY_ORDER = auto()
    CHANGED_INPUT = auto()
    RESHAPED_INPUT = auto()
    INPUT_CHANGED_BY = auto()
    OTHER_INPUTS = auto()
    GLOBAL_STATE = auto()
    LEAKS = auto()
    UNTIMELY = auto()
    OUTSIDE_INTERVAL = auto()
    OUT_OF_BOUNDS = auto()
    BAD_COST = auto()
    OTHER_WORK = auto()
    SENDS_TOO_LITTLE = auto()
    BREAKS_CONTRACT = auto()
    # impossible times
    BELOW_DATASHEET = auto()
    BELOW_LIMIT = auto()
    NOT_JOINED = auto()
    # no speedup, or an unsure one
    TOO_SHORT = auto()
    FEW_BLOCKS = auto()
    CROSSES_BAND = auto()
    NOISY_BASELINE = auto()
    CONTRADICTED_ALONE = auto()
    ALL_VOIDED = auto()
    INTERPRETED = auto()
    GLOO_ONLY = auto()
    NEEDS = auto()
    NO_MEMORY = auto()
    # how a process ended
    RAISED = auto()
    HUNG = auto()
    KILLED = auto()
    ENDED = auto()
    # beside a time
    IS_A_COPY = auto()
    NO_KERNEL = auto()
    HOST_BOUND = auto()
    DEVICE_WAITED = auto()
    COMPILED_LONG = auto()
    NOT_PROFILED = auto()
    CORES_BUSY = auto()
    CORES_BUSY_BETWEEN = auto()
    UNEVEN = auto()
    ALLOCATES = auto()
    FITS_IN_CACHE = auto()
    ABOVE_LIMIT = auto()
    MEDIANS_DISAGREE = auto()


class Where(Enum):
    """Where an answer was found wrong: the value of a finding's fact `where`."""

    SIZE = "size"  # of a check; facts `size`, perhaps `draw`, `filled`
    TIMED = "timed"  # at the timed size; perhaps `filled`
    LESS = "less"  # at the timed size less one; fact `size`
    AGAIN = "again"  # when called a second time
    ROUND = "round"  # in a timed round, against the baseline's
    ALONE = "alone"  # in its run alone


@dataclass(frozen=True)
class Finding:
    """A cause with its facts: names and plain values, as a record can hold them."""

    cause: Cause
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:  # a record holds finite numbers
        plain = {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in self.facts.items()}
        object.__setattr__(self, "facts", plain)

    def with_facts(self, **facts: Any) -> "Finding":
        """With further facts, of which those that are known stay."""
        return replace(self, facts={**facts, **self.facts})


@dataclass(frozen=True)
class Outcome:
    """A verdict, and its cause if it has one."""

    verdict: Verdict
    reason: Finding | None = None
