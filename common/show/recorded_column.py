"""What was recorded on a GPU, for the table of a machine without one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from common.pairs.pair import Pair, class_of
from common.record.files import Problems
from common.record.result import PairResult, Record
from common.record.store import current_filter, recorded_sizes


@dataclass(frozen=True)
class GpuResults:
    """The newest results of one GPU by chapter, pair and size; None in place of one whose pair has changed since.

    `device`: its name, short; `origin`: its name and the dates; `problems`: the files that could not be read.
    """

    results: dict[tuple[str, str, str], PairResult | None] = field(default_factory=dict)
    device: str = ""
    origin: str = ""
    problems: Problems = field(default_factory=dict)

    def is_stale(self, pair: PairResult) -> bool:
        """Whether something is recorded of a pair at its size, of another state of its code."""
        return any(key in self.results for key in self._keys(pair)) and self.result_for(pair) is None

    def result_for(self, pair: PairResult) -> PairResult | None:
        """What is recorded of a pair at its size; at the default size where a CPU has another in place of it."""
        return next((self.results[key] for key in self._keys(pair) if key in self.results), None)

    def _keys(self, pair: PairResult) -> list[tuple[str, str, str]]:
        sizes = (pair.size, "default") if class_of(pair.size) == "default" else (pair.size,)
        return [(pair.chapter, pair.name, size) for size in sizes]


NO_GPU_RESULTS = GpuResults()


def gpu_results(record: Record, pairs: Sequence[Pair]) -> GpuResults:
    """What is recorded on a GPU of the measured `pairs`; nothing if the record is of a GPU itself."""
    if record.environment["device"]["kind"] == "cuda" or not pairs:
        return NO_GPU_RESULTS
    results: dict[tuple[str, str, str], PairResult | None] = {}
    problems: Problems = {}
    is_current, name, dates = current_filter(pairs), "", set[str]()
    for chapter in {pair.chapter for pair in record.pairs}:
        for old in (old for _, old in recorded_sizes(chapter, problems=problems)):
            for result in old.pairs:
                results.setdefault((chapter, result.name, result.size), result if is_current(result) else None)
            name, dates = old.environment["device"]["name"], dates | {old.environment["date"][:10]}
    return GpuResults(results, short_name(name), f"{name}, {' and '.join(sorted(dates))}", problems)


def short_name(device: str) -> str:
    """A GPU's name without its maker, its memory and its socket: `H100` for `NVIDIA H100 80GB HBM3`."""
    name = device.removeprefix("NVIDIA ").removeprefix("GeForce ")
    return re.sub(r"[ -](\d+GB|HBM|PCIe|SXM|NVL).*", "", name)
