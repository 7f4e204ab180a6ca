"""What the processes of a pair are asked to do, and what they answer. Whoever asks need not import torch."""

from dataclasses import dataclass
from typing import Any

from common.pairs.pair import Pair

TURN = -1.0  # said in place of a fraction: whose turn it is, and "" when that is over


@dataclass(frozen=True)
class Job:
    """What one process is asked to do. `labels`: the versions to load; `timed`: those to time, not only to check.

    `verified`: the labels that were right at the check sizes, and at the timed one, earlier in the same run.
    `tells_turns`: say whose turn it is, so that it is known who has killed the process.
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
    tells_turns: bool = False
    stressed: bool = True  # on hard values, too


@dataclass(frozen=True)
class Errand:
    """A run of one candidate alone: how many samples, of how many calls, each of which takes the host so long to issue.

    `folder`: where the answer is left that is to be kept; without one none is, and nothing is looked at but times.
    """

    label: str
    samples: int
    calls: int
    host_s: float
    folder: str = ""


@dataclass(frozen=True)
class Alone:
    """What a run alone has shown. `verdict`, `reason`: why the candidate is out, if it is.

    `busy`: cores that it keeps busy while nothing is asked of it. `precision`, `custom`, `differs`: how its answer
    is to be judged. `wrong`: of the baseline's run, whose answers are not right.
    """

    seconds: list[float]
    verdict: str = ""
    reason: str = ""
    busy: float = 0.0
    precision: str = ""
    custom: tuple[float, float] | None = None
    differs: bool = False
    wrong: dict[str, str] | None = None
