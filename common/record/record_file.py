"""Read and write files of records. All figures are computed from the samples when a file is read."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from common.record import recompute
from common.record.files import MEASURE_OR_CONVERT, Format, write_text
from common.record.form import FORM, Candidate, File, Result, Run, Variant
from common.record.outcome import Verdict
from common.record.result import Arm, PairResult, Record, Row

DIGITS = 6  # of a number in a file
IN_MEMORY = {"arguments": "sizes", "other_load": "neighbours", "candidates": "arms"}  # a result's names in a file
ONLY_IN_A_FILE = ("run", "variants", "left_out")
Order = list[str]


def read(file: File) -> list[Record]:
    """A record for each run of a file. Raises RecordError, or an error about what its samples lack."""
    records = [Record(_to_builtins(run.environment), _to_builtins(run.limits), []) for run in file.runs]
    with np.errstate(over="raise", divide="raise", invalid="raise"):  # an error names the problem
        for result in file.results:
            record = records[result.run]
            record.pairs.append(_pair(result, record.limits))
    return records


FORMAT = Format("a benchmark record", FORM, File, read, MEASURE_OR_CONVERT)


def load_records(path: Path | str) -> list[Record]:
    """The runs of a file, in its order. Raises RecordError."""
    records: list[Record] = FORMAT.load(path)
    return records


def load_record(path: Path | str) -> Record:
    """A file as one record; see `combine_records`. Raises RecordError."""
    first, *more = load_records(path)
    return (combine_records([first, *more]) or first) if more else first


def combine_records(records: Sequence[Record]) -> Record | None:
    """One record from several runs of the newest run's device, with all dates; the limits are the newest run's."""
    if not records:
        return None
    newest = max(records, key=date_of)
    device = newest.environment["device"]["name"]
    parts = [record for record in records if record.environment["device"]["name"] == device]
    dates = sorted({date_of(record)[:10] for record in parts})
    pairs = sorted((pair for record in parts for pair in record.pairs), key=lambda pair: pair.name)
    return replace(newest, environment={**newest.environment, "dates": dates}, pairs=pairs)


def date_of(record: Record) -> str:
    return str(record.environment["date"])


def save_record(record: Record, path: Path | str) -> None:
    """Write a record into an existing folder. Raises RecordError."""
    save_records([record], path)


def save_records(records: Sequence[Record], path: Path | str) -> None:
    """Write the runs of a file. Raises RecordError."""
    write_text(Path(path), to_json(records))


def to_json(records: Sequence[Record]) -> str:
    """The text of a file: a line for each run and each result. Raises ValueError for what JSON cannot hold."""
    runs = [_file_values({"environment": record.environment, "limits": record.limits}, Run) for record in records]
    results = [_result_values(pair, number) for number, record in enumerate(records) for pair in record.pairs]
    lines = (",\n".join(msgspec.json.encode(item).decode() for item in part) for part in (runs, results))
    return '{{"form":{},"runs":[\n{}\n],"results":[\n{}\n]}}\n'.format(FORM, *lines)


def _file_values(values: dict[str, Any], form: type[msgspec.Struct]) -> dict[str, Any]:
    """The values as a file has them: without defaults, numbers rounded, except in the arguments of `inputs`."""
    plain_values = _to_builtins(msgspec.convert(_to_builtins(values), form))
    return {name: value if name == "arguments" else _round(value) for name, value in plain_values.items()}


# From a file


def _to_builtins(value: Any) -> Any:
    """The value as JSON has it; a number of NumPy's as Python's."""
    return msgspec.to_builtins(value, enc_hook=lambda number: number.item())


def _pair(result: Result, limits: dict[str, Any]) -> PairResult:
    fields = msgspec.structs.asdict(result)
    values = {IN_MEMORY.get(name, name): value for name, value in fields.items() if name not in ONLY_IN_A_FILE}
    arms = {label: _arm(candidate) for label, candidate in result.candidates.items()}
    details = {"clocks": _to_builtins(result.clocks) or {}, "group": _to_builtins(result.group) or {}}
    pair = PairResult(**{**values, **details, "arms": arms, "orders": _orders(result), "rows": []})
    pair = recompute.with_figures(pair, limits)
    return replace(pair, rows=[row for variant in result.variants for row in _rows(variant, pair)])


def _arm(candidate: Candidate) -> Arm:
    figures = {"median_s": 0.0, "of_limit": None, "of_datasheet": None, "kernels": _to_builtins(candidate.kernels)}
    return Arm(**{**msgspec.structs.asdict(candidate), **figures})


def _rows(variant: Variant, pair: PairResult) -> list[Row]:
    """A variant's rows: against the baseline, and against the variant that it names."""
    label, precision, notes = variant.label, variant.precision, variant.notes
    others = ["baseline", *filter(None, [variant.versus])]
    if variant.verdict:
        verdict, reason = Verdict(variant.verdict), variant.reason
        return [Row(label, other, verdict, reason, precision=precision, notes=notes) for other in others]
    if missing := {label, *others} - pair.arms.keys():
        raise ValueError(f"{pair.name} {pair.size}: there are no samples of {', '.join(sorted(missing))}")
    rows = [recompute.row(pair.arms, label, other, pair.noise_floor or 0.0, precision) for other in others]
    return [replace(row, notes=notes) for row in rows]


def _orders(result: Result) -> list[list[Order]]:
    labels, times = [*result.candidates, *result.left_out], [*result.candidates.values()]
    orders = []
    for number, block in enumerate(result.orders):
        rounds = [order for order in block if isinstance(order, list)]
        if not rounds:
            first = [index for index in block if isinstance(index, int)]
            rounds = _rotate(first, len(times[0].seconds[number]))
        orders.append([[labels[index] for index in order] for order in rounds])
    return orders


def _rotate(first: list[int], rounds: int) -> list[list[int]]:
    turns = (number % len(first) for number in range(rounds))
    return [first[turn:] + first[:turn] for turn in turns]


# Into a file


def _result_values(pair: PairResult, run: int) -> dict[str, Any]:
    """A result as a file has it."""
    left_out = [*dict.fromkeys(label for block in pair.orders for order in block for label in order)]
    left_out = [label for label in left_out if label not in pair.arms]
    values = {name: getattr(pair, IN_MEMORY.get(name, name), None) for name in Result.__struct_fields__}
    values |= {"run": run, "left_out": left_out, "orders": _order_numbers(pair, left_out)}
    values |= {"clocks": pair.clocks or None, "group": pair.group or None}
    values["variants"] = [_variant(pair, label) for label in dict.fromkeys(row.variant for row in pair.rows)]
    names = Candidate.__struct_fields__
    values["candidates"] = {label: {name: getattr(arm, name) for name in names} for label, arm in pair.arms.items()}
    return _file_values(values, Result)


def _variant(pair: PairResult, label: str) -> dict[str, Any]:
    rows = [row for row in pair.rows if row.variant == label]
    first, versus = rows[0], next((row.versus for row in rows if row.versus != "baseline"), "")
    values: dict[str, Any] = {"label": label, "versus": versus, "precision": first.precision, "notes": first.notes}
    if first.ratio is None and not (first.verdict == Verdict.TOO_SHORT and _is_below_clock_floor(pair, label)):
        values |= {"verdict": first.verdict, "reason": first.reason}
    return values


def _is_below_clock_floor(pair: PairResult, label: str) -> bool:
    """Whether `too short` follows from the clock's floor."""
    return any(recompute.is_short(pair.arms[name]) for name in (label, "baseline") if name in pair.arms)


def _order_numbers(pair: PairResult, left_out: list[str]) -> list[Any]:
    """The orders as `form.Result` has them."""
    labels = {label: number for number, label in enumerate([*pair.arms, *left_out])}
    orders: list[Any] = []
    for number, block in enumerate(pair.orders):
        rounds = [[labels[label] for label in order] for order in block]
        times = [len(arm.seconds[number]) for arm in pair.arms.values() if number < len(arm.seconds)]
        is_rotated = times[:1] == [len(rounds)] and rounds == _rotate(rounds[0], len(rounds))
        orders.append(rounds[0] if is_rotated else rounds)
    return orders


def _round(value: Any) -> Any:
    """With floats of six significant digits; whole numbers, as an amount of bytes is, stay exact."""
    if isinstance(value, dict):
        return {name: _round(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_round(item) for item in value]
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ValueError(f"JSON holds no {value}")
    return value if value.is_integer() else float(f"{value:.{DIGITS}g}")
