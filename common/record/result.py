"""The record of a run: frozen dataclasses <-> one versioned JSON file, whose raw samples give every verdict again.

Units: seconds, bytes, FLOPs (one FMA = 2), ratios without unit. `record.schema.json` describes the file.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 3
CONTROL = "control"  # the label of the baseline that is measured once more, against itself: the A/A control
BELIEVED = ("faster", "slower", "same", "unsure")  # verdicts that come with a ratio
FAILED = ("invalid", "died")
UNTIMED = ("verified", "too short")  # right, but without a ratio


@dataclass(frozen=True)
class Arm:
    """One arm's samples. `of_limit` and `of_datasheet`: the limit's time / the median (1.0 = at the limit)."""

    median_s: float
    host_s: float | None  # time the host needs to issue the call (device clock only)
    of_limit: float | None
    of_datasheet: float | None
    compile_s: float  # first set-up and call: compiling, tuning, warming
    seconds: list[list[float]]  # [block][round]
    allocated_bytes: int | None = None  # by one warm call: torch's and CuPy's memory
    limit_by: str = ""  # the cost key that sets its limit; another than the baseline's under PRECISION
    peak_bytes: int | None = None  # the most of them in use at once
    calls: int = 1  # that make a sample
    alone: list[list[float]] = field(default_factory=list)  # [run][sample], each run in a process of its own


@dataclass(frozen=True)
class Row:
    """What is concluded of one variant against one other arm."""

    variant: str
    versus: str
    verdict: str
    reason: str = ""
    ratio: float | None = None  # versus / variant: above 1 the variant is faster; None unless it may be believed
    interval: tuple[float, float] | None = None
    vs_library: dict[str, dict[str, Any]] = field(default_factory=dict)  # label -> {ratio: library / variant, ...}
    precision: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PairResult:
    """Everything measured of one pair at one size."""

    chapter: str
    name: str
    size: str
    sizes: dict[str, Any]  # the arguments of `inputs`
    source_hash: str
    rows: list[Row]
    clock: str = ""
    noise_floor: float | None = None
    cost: dict[str, float] = field(default_factory=dict)
    limit_s: float | None = None  # largest of cost / measured peak
    limit_by: str = ""  # the cost key that sets it
    arms: dict[str, Arm] = field(default_factory=dict)
    orders: list[list[list[str]]] = field(default_factory=list)  # [block][round] -> arms in the order they ran
    seeds: list[int] = field(default_factory=list)
    voided_rounds: int = 0
    spent_s: dict[str, float] = field(default_factory=dict)  # start, what its process tells of itself, total
    neighbours: list[str] = field(default_factory=list)  # who else used the machine meanwhile, and how much
    clocks: dict[str, int] = field(default_factory=dict)  # of a GPU at the end of the samples, still under load
    carried: list[str] = field(default_factory=list)  # earlier hashes, where names changed and the work did not


@dataclass(frozen=True)
class Record:
    schema: int
    environment: dict[str, Any]
    limits: dict[str, dict[str, Any]]
    pairs: list[PairResult]


def to_json(record: Record) -> str:
    return json.dumps(asdict(record), indent=1, allow_nan=False)


def from_dict(data: dict[str, Any]) -> Record:
    """The record in `data`, which must already fit the schema."""
    pairs = []
    for pair in data["pairs"]:
        rows = [Row(**{**row, "interval": tuple(row["interval"]) if row["interval"] else None}) for row in pair["rows"]]
        arms = {label: Arm(**arm) for label, arm in pair["arms"].items()}
        pairs.append(PairResult(**{**pair, "rows": rows, "arms": arms}))
    return Record(**{**data, "pairs": pairs})
