"""The record of a run as the course uses it. `form.py` describes its file, from which `record_file.py` makes it again.

Units: seconds, bytes, FLOPs (one FMA = 2); ratios have no unit.
"""

from dataclasses import dataclass, field
from typing import Any

from common.record.outcome import Cause, Finding, Verdict

CONTROL = "control"  # label of the A/A control: the baseline measured once more, against itself


@dataclass(frozen=True)
class Arm:
    """One candidate's samples, and what follows from them: `median_s`, `of_limit`, `of_datasheet`, `limit_by`.

    `of_limit`, `of_datasheet`: the limit's time / the median (1.0 = at the limit).

    `max_error`, `rms_error`: of a timed answer against the float64 oracle, in units of the oracle's RMS; of several
    arrays the worst counts, of several ranks rank 0's answer. 0 for integers, which must be equal. None for the
    control, for a library whose answer may differ, and in records older than these figures.
    """

    median_s: float
    host_s: float | None  # time the host needs to issue the call (device clock only)
    of_limit: float | None
    of_datasheet: float | None
    compile_s: float  # first setup and call: compiling, tuning, warm-up
    seconds: list[list[float]]  # [block][round]
    allocated_bytes: int | None = None  # by one warm call: memory of torch and CuPy
    limit_by: str = ""  # the cost key that sets its limit; may differ from the baseline's under PRECISION
    peak_bytes: int | None = None  # the largest amount in use at once
    calls: int = 1  # calls per sample
    alone: list[list[float]] = field(default_factory=list)  # [run][sample], each run in its own process
    by_rank: list[list[list[float]]] = field(default_factory=list)  # [block][round][rank] seconds; the largest counts
    sent_bytes: list[int] = field(default_factory=list)  # [rank] to other ranks in a call
    max_error: float | None = None
    rms_error: float | None = None
    floor_s: float | None = None  # what the clock reads for as many empty calls
    cost: dict[str, float] = field(default_factory=dict)  # of its own work, where the baseline's has other names
    precision: str = ""  # of a library's answer, where that is the lesson
    kernels: list[dict[str, Any]] = field(default_factory=list)  # machine code that ran: see `form.Kernel`

    @property
    def host_bound(self) -> Finding | None:
        """If the host issues a call more slowly than the device carries it out."""
        if self.host_s is None or self.host_s <= self.median_s:
            return None
        return Finding(Cause.HOST_BOUND, {"host_us": self.host_s * 1e6, "device_us": self.median_s * 1e6})


@dataclass(frozen=True)
class Row:
    """The conclusion about one variant against one other arm."""

    variant: str
    versus: str
    verdict: Verdict
    reason: Finding | None = None
    ratio: float | None = None  # versus / variant: above 1 the variant is faster; None if it is not reliable
    interval: tuple[float, float] | None = None
    vs_library: dict[str, dict[str, Any]] = field(default_factory=dict)  # label -> {ratio: library / variant, ...}
    precision: str = ""
    notes: list[Finding] = field(default_factory=list)


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
    spent_s: dict[str, float] = field(default_factory=dict)  # start, the stages that the child process reports, total
    neighbours: list[str] = field(default_factory=list)  # other processes that used the machine, and how much
    clocks: dict[str, int] = field(default_factory=dict)  # of a GPU at the end of the samples, still under load
    carried: list[str] = field(default_factory=list)  # earlier hashes, of code that was proven to give the same work
    group: dict[str, Any] = field(default_factory=dict)  # of a pair with RANKS: processes, backend, environment
    whole_draws: bool = False  # before each call all inputs were drawn anew (in no file)


@dataclass(frozen=True)
class Record:
    """A run: its machine and software, that machine's limits (`common.machine.limits.Limit`), and its results."""

    environment: dict[str, Any]  # see `form.Environment`
    limits: dict[str, dict[str, Any]]
    pairs: list[PairResult]
