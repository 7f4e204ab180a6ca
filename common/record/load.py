"""Read and write records; refuse a record whose figures contradict its samples."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common import stats
from common.record.decision import decide
from common.record.files import Format, RecordError, write_text
from common.record.result import CONTROL, SCHEMA, Arm, PairResult, Record, Row, from_dict, to_json

SAME = 1e-6  # relative: the last digits may differ on another machine


def read(data: dict[str, Any]) -> Record:
    """The record, after its figures have been computed again from its samples. Raises RecordError."""
    record = from_dict(data)
    with np.errstate(over="raise", divide="raise", invalid="raise"):  # an error names the problem
        wrong = contradiction(record)
    if wrong:
        raise RecordError(f"a record whose figures do not follow from its samples ({wrong})")
    return record


SCHEMA_FILE = Path(__file__).with_name("record.schema.json")
FORMAT = Format("a benchmark record", SCHEMA, read, SCHEMA_FILE)
load_record = FORMAT.load


def save_record(record: Record, path: Path | str, replaces: bool = True) -> bool:
    """Write a record into an existing folder; False if it may not replace an existing file. Raises RecordError."""
    return write_text(Path(path), to_json(record) + "\n", replaces)


def contradiction(record: Record) -> str:
    """One line about the first figure that does not follow from the samples; empty if all do."""
    problems = ((pair, _wrong(pair)) for pair in record.pairs)
    return next((f"{pair.chapter} {pair.name} {pair.size}: {problem}" for pair, problem in problems if problem), "")


def _wrong(pair: PairResult) -> str:
    try:
        for what, says, gives in _claims(pair):
            if not _agree(says, gives):
                return f"{what} is {_shown(says)}, its samples give {_shown(gives)}"
    except KeyError as error:
        return f"there are no samples of {error}"
    except ValueError as error:  # arms that were not sampled together
        return str(error)
    return ""


def _claims(pair: PairResult) -> Iterator[tuple[str, Any, Any]]:
    """(what, the record's value, the value from the samples) of every figure that is computed from samples."""
    for label, arm in pair.arms.items():
        yield f"the median of {label}", arm.median_s, stats.overall_median(arm.seconds)
    if pair.noise_floor is not None:
        floor = stats.noise_floor(pair.arms["baseline"].seconds, pair.arms[CONTROL].seconds)
        yield "the noise floor", pair.noise_floor, floor
    for row in pair.rows:
        if row.ratio is not None:
            yield from _claims_of(row, pair.arms, pair.noise_floor or 0.0)


def _claims_of(row: Row, arms: dict[str, Arm], floor: float) -> Iterator[tuple[str, Any, Any]]:
    where, seconds = f"{row.variant} vs {row.versus}", arms[row.variant].seconds
    found = stats.estimate(arms[row.versus].seconds, seconds)
    yield f"{where}: ratio", row.ratio, found.ratio
    bounded = stats.sign_interval_rank(len(seconds)) > 0
    yield f"{where}: interval", row.interval, (found.low, found.high) if bounded else None
    outcome = decide(found, len(seconds), floor, arms[row.versus].alone, arms[row.variant].alone)
    yield f"{where}: verdict", row.verdict, outcome.verdict
    for label, value in row.vs_library.items():
        library = stats.estimate(arms[label].seconds, seconds)
        claimed = [value["ratio"], *(value["interval"] or ())]
        yield f"{where}: against {label}", claimed, [library.ratio, library.low, library.high]


def _agree(says: Any, gives: Any) -> bool:
    if isinstance(says, float | int) and isinstance(gives, float | int):
        return math.isclose(says, gives, rel_tol=SAME, abs_tol=1e-12)
    if isinstance(says, tuple | list) and isinstance(gives, tuple | list):
        return len(says) == len(gives) and all(map(_agree, says, gives))
    return bool(says == gives)


def _shown(figure: Any) -> str:
    if isinstance(figure, tuple | list):
        return f"[{', '.join(map(_shown, figure))}]"
    return f"{figure:.6g}" if isinstance(figure, float) else str(figure)
