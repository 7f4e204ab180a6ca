"""What a pair's processes are asked to do, and what they answer. Needs no torch."""

from dataclasses import dataclass
from typing import Any

from common.isolation.pipe import End
from common.isolation.worker import ChildFailed
from common.pairs.pair import Pair
from common.record.outcome import Cause, Finding, Outcome

ENDS = {End.RAISED: Cause.RAISED, End.HUNG: Cause.HUNG, End.KILLED: Cause.KILLED, End.ENDED: Cause.ENDED}
TURN = -1.0  # sent in place of a fraction: the candidate that runs now, or "" at its end


@dataclass(frozen=True)
class Job:
    """What one process is asked to do. `labels`: the versions to load; `timed`: those to time as well as check.

    `verified`: labels that were right at the check sizes and at the timed size, earlier in the same run.
    `reports_turns`: report which candidate runs, so that one that kills the process is known.
    """

    pair: Pair
    size: str
    device: str
    info: dict[str, Any]
    limits: dict[str, Any]
    labels: list[str]
    timed: list[str]
    blocks: int | None = None  # None: the pilot decides
    seed: int = 0
    verified: tuple[str, ...] = ()
    reports_turns: bool = False
    stressed: bool = True  # also on stress draws
    ranks: int = 1  # processes that measure it together


@dataclass(frozen=True)
class AloneRequest:
    """A run of one candidate alone: the number of samples, the calls per sample, and the host's time to issue a call.

    `folder`: where the kept answer is saved. Without it no answer is kept, and only times are measured.
    `whole_draws`: all inputs are drawn anew before each call.
    """

    label: str
    samples: int
    calls: int
    host_s: float
    folder: str = ""
    whole_draws: bool = False


@dataclass(frozen=True)
class AloneResult:
    """The result of a run alone. `outcome`: why the candidate is disqualified, if it is.

    `busy_cores`: those that it keeps busy between calls. `precision`, `custom`, `answer_differs`: how its answer is to
    be judged. `wrong_answers`: in the baseline's run.
    """

    seconds: list[float]
    outcome: Outcome | None = None
    busy_cores: float = 0.0
    precision: str = ""
    custom: tuple[float, float] | None = None
    answer_differs: bool = False
    wrong_answers: dict[str, Finding] | None = None


def finding_of(failure: ChildFailed) -> Finding:
    """How a process ended, as the cause of a verdict."""
    return Finding(ENDS[failure.end], {"text": str(failure)})
