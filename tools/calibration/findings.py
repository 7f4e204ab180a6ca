"""The results of a calibration and its checks: frozen dataclasses <-> recorded/<device>/calibration.json.

Ratios are versus / variant; times are seconds. The checks can be computed again from the rest.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.pairs.pair import short
from common.record.files import file_of_device, write_text
from common.record.outcome import WITH_SPEEDUP, Cause
from common.record.result import PairResult
from common.show import words

SCHEMA = 3
FILE = "calibration.json"
PAIRS = Path(__file__).with_name("pairs")


@dataclass(frozen=True)
class VariantResult:
    """The harness's result for one variant. `reason`: why there is no ratio, or the cause CONTRADICTED_ALONE."""

    verdict: str
    ratio: float | None
    low: float | None
    high: float | None
    reason: str = ""


@dataclass(frozen=True)
class Run:
    """One measurement of a pair: the result of each variant."""

    seed: int
    blocks: int
    noise_floor: float | None
    said: dict[str, VariantResult]


@dataclass(frozen=True)
class Spin:
    """Samples of a call of known length. `true_s`: by each independent clock; `read_s`: by the harness."""

    nominal_s: float
    true_s: dict[str, list[float]]
    read_s: list[float]


@dataclass(frozen=True)
class KnownTimes:
    """Samples, in seconds, of calls whose length or whose cause is known. On a CPU there are no reads."""

    spins: list[Spin]
    one_s: list[float]  # the pair `work` with one repetition
    many_s: list[float]  # the same with `many`
    many: int
    cold_s: list[float]  # reads of a buffer smaller than a GPU's L2, after a flush
    warm_s: list[float]  # the same, directly after another read


@dataclass(frozen=True)
class Check:
    """A row of the table."""

    check: str
    condition: str
    runs: int
    found: str
    accepted: str
    passed: bool


@dataclass(frozen=True)
class Findings:
    """All measurements of a calibration, and its checks."""

    schema: int
    environment: dict[str, Any]
    source_hashes: dict[str, str]  # of the pairs
    repetitions: dict[str, int]  # version of the pair `work` -> number of repetitions
    runs: dict[str, list[Run]]  # condition -> runs of the pair `work`; under `alone` each candidate also ran alone
    nothing: list[Run]  # runs of the pair `nothing`
    copies: list[float | None]  # shares of the limit that copies reached; None without a time
    known: KnownTimes
    checks: list[Check]


def run_of(seed: int, measured: PairResult) -> Run:
    results = {}
    for row in measured.rows:
        low, high = row.interval or (None, None)
        is_doubted = row.reason is not None and row.reason.cause == Cause.CONTRADICTED_ALONE
        reason = Cause.CONTRADICTED_ALONE.value if is_doubted else ""
        reason = reason if row.verdict in WITH_SPEEDUP else words.text(row.reason)
        results[short(row.variant)] = VariantResult(row.verdict, row.ratio, low, high, reason)
    return Run(seed, len(measured.orders), measured.noise_floor, results)


def to_json(findings: Findings) -> str:
    """JSON with one line for each run, spin and check."""

    def lines(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n" + ",\n".join(json.dumps(item, allow_nan=False) for item in value) + "\n]"
        if isinstance(value, dict) and any(isinstance(item, list) for item in value.values()):
            return "{" + ",\n".join(f"{json.dumps(key)}: {lines(item)}" for key, item in value.items()) + "}"
        return json.dumps(value, allow_nan=False)

    return "{" + ",\n".join(f"{json.dumps(key)}: {lines(value)}" for key, value in asdict(findings).items()) + "}\n"


def keep(findings: Findings, folder: Path | None = None) -> Path:
    """Save as recorded/<device>/calibration.json. Raises RecordError."""
    write_text(path := file_of_device(findings.environment, FILE, folder), to_json(findings))
    return path
