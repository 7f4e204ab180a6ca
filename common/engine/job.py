"""What the process of a pair is asked to do. Whoever asks need not import torch."""

from dataclasses import dataclass
from typing import Any

from common.pairs.pair import Pair

TURN = -1.0  # said in place of a fraction: whose turn it is, and "" when that is over


@dataclass(frozen=True)
class Job:
    """What one process is asked to do. `labels`: the versions to load; `timed`: those to time, not only to check.

    `verified`: the arms that were right at the check sizes, and at the timed one, earlier in the same run.
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
