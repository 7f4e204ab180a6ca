"""Convert files of the old form of records, or calibrations, in their place: python -m tools.convert_records FILE ...

Every verdict and figure that the old file states must follow from its samples; a reason or note that is not known here
is an error, and the file stays as it is. `python -m common.record.store FILE` then merges a record into recorded/.
"""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from common.calibration import findings
from common.pairs.contract import LIBRARY_KINDS
from common.pairs.user_error import UserError
from common.program import Parser, finish, status_of
from common.record import files, recompute
from common.record.outcome import WITH_SPEEDUP, Cause, Finding, Verdict
from common.record.record_file import save_records
from common.record.result import Arm, PairResult, Record, Row
from common.show import words

OLD = 3
LEAST_S = 20e-6  # a longer time is above three floors of any clock
NEAR = 1e-6  # relative: the old form's last digits
NUMBER = r"([\d.]+(?:e[+-]?\d+)?)"
REASONS: list[tuple[str, Cause, tuple[str, ...]]] = [  # a text of the old form, its cause, the names of its facts
    (r"needs .*", Cause.NEEDS, ("text",)),
    (r".*does not fit in memory.*", Cause.NO_MEMORY, ("text",)),
    (r"hung: .*", Cause.HUNG, ("text",)),
    (r"killed by .*", Cause.KILLED, ("text",)),
    (r"exited with status .*", Cause.ENDED, ("text",)),
    (r"\w+(?:Error|Exception)\b.*", Cause.RAISED, ("text",)),
    (rf"verified with gloo on {NUMBER} processes; timing needs \d+ GPUs", Cause.GLOO_ONLY, ("ranks",)),
    (r"verified at the check sizes, kernels in Triton's interpreter; timing needs a GPU", Cause.INTERPRETED, ()),
    (rf"not timed: all {NUMBER} rounds were voided for thermal or hardware slowdown", Cause.ALL_VOIDED, ("rounds",)),
    (
        rf".*(?:below|less than) {NUMBER} x the clock's own floor of {NUMBER} us",
        Cause.TOO_SHORT, ("factor", "floor_us"),
    ),
    (r"is a copy of the baseline", Cause.IS_A_COPY, ()),
    (r"launches no kernel of its own: it calls a library", Cause.NO_KERNEL, ()),
    (
        rf"launch-bound: the host needs {NUMBER} us to issue {NUMBER} us of device work",
        Cause.HOST_BOUND, ("host_us", "device_us"),
    ),
    (
        rf"the device waited for the host in {NUMBER} of {NUMBER} samples: the time includes this",
        Cause.DEVICE_WAITED, ("waits", "samples"),
    ),
    (rf"its first calls took {NUMBER} s longer(?: \(|: )compiling, tuning\)?", Cause.COMPILED_LONG, ("seconds",)),
    (
        r"the profiler could not see the device: only times show whether all streams are joined",
        Cause.NOT_PROFILED, (),
    ),
    (rf"keeps {NUMBER} cores busy, the baseline {NUMBER}", Cause.CORES_BUSY, ("cores", "baseline")),
    (rf"keeps {NUMBER} cores busy between calls", Cause.CORES_BUSY_BETWEEN, ("cores",)),
    (
        rf"some of its calls (?:take much longer: the mean is|are much dearer: their mean is) {NUMBER}"
        r" (?:x|of) the median",
        Cause.UNEVEN, ("times",),
    ),
    (r"allocates .* a call, the baseline .*", Cause.ALLOCATES, ()),
    (r"fits in the cache.*: (?:memory bandwidth is no|its limit is not memory band).*", Cause.FITS_IN_CACHE, ()),
    (r"above the measured limit: something else ran while the limits were measured", Cause.ABOVE_LIMIT, ()),
    (
        rf"its device works on for {NUMBER} us after the clock stopped: a stream is not joined",
        Cause.NOT_JOINED, ("us",),
    ),
]  # fmt: skip
COUNTS = ("ranks", "rounds", "factor", "waits", "samples")  # facts that are whole numbers
WHOSE = re.compile(r"(the baseline|baseline|(?:library|yardstick|optimized)(?:/\w+)?): (.*)")


def finding_of(text: str) -> Finding:
    """A text of the old form as data. Raises UserError for one that is not known."""
    whose = WHOSE.fullmatch(text)
    name, reason = (whose[1].removeprefix("the "), whose[2]) if whose else ("", text)
    is_alone = reason.startswith("alone: ")
    for pattern, cause, names in REASONS:
        if match := re.fullmatch(pattern, reason.removeprefix("alone: ")):
            values = match.groups() or (match[0],)
            facts: dict[str, Any] = {
                fact: value if fact == "text" else int(value) if fact in COUNTS else float(value)
                for fact, value in zip(names, values, strict=False)
            }
            facts |= ({"whose": name} if name else {}) | ({"alone": True} if is_alone else {})
            return Finding(cause, facts)
    raise UserError(f"unknown text: {text}")


def note_of(text: str, variant: str, arms: dict[str, Arm]) -> Finding:
    """A note as data, where the samples have its facts with those: what the text says is rounded."""
    finding = finding_of(text)
    if finding.cause == Cause.ALLOCATES:
        variant_bytes, baseline_bytes = (arms[label].allocated_bytes or 0 for label in (variant, "baseline"))
        finding = Finding(finding.cause, {"bytes": variant_bytes, "baseline": baseline_bytes})
    if finding.cause == Cause.HOST_BOUND:
        arm = arms[variant]
        finding = Finding(finding.cause, {"host_us": (arm.host_s or 0.0) * 1e6, "device_us": arm.median_s * 1e6})
    if (new_text := words.text(finding)) != in_new_words(text):
        raise UserError(f"{text}: would become {new_text}")
    return finding


def in_new_words(text: str) -> str:
    """A text in today's words, of which earlier records have others."""
    changes = {
        "next to nothing": "almost nothing",
        r"s longer: compiling, tuning$": "s longer (compiling, tuning)",
        r"are much dearer: their mean is ([\d.]+) of": r"take much longer: the mean is \1 x",
        r"^(\w+/?\w*: )?too short for this clock: below": r"\1below the timer's resolution: less than",
        "fits in the cache: its limit is not memory bandwidth": (
            "fits in the cache, which stays warm on the wall clock: memory bandwidth is no limit"
        ),
    }
    for old, new in changes.items():
        text = re.sub(old, new, text)
    return text


def record_of(data: dict[str, Any]) -> Record:
    """The record of the old form in `data`. Raises UserError."""
    limits = data["limits"]
    return Record(data["environment"], limits, [result_of(pair, limits) for pair in data["pairs"]])


def result_of(data: dict[str, Any], limits: dict[str, Any]) -> PairResult:
    """A result of the old form: what follows from its samples is computed, and compared with what it states."""
    place = f"{data['chapter']} {data['name']} {data['size']}"
    try:
        arms = arms_of(data, limits)
        rows = [row_of(row, arms, data) for row in data["rows"]]
        pair = replace(PairResult(**{**data, "arms": arms, "rows": []}))
        pair = recompute.with_figures(pair, limits)
        rows = [recompute_row(pair, row) if has_samples(row) else row for row in rows]
        compare({**data, "rows": data["rows"]}, replace(pair, rows=rows))
    except (UserError, KeyError, ValueError) as error:
        raise UserError(f"{place}: {error}") from None
    return replace(pair, rows=rows)


def has_samples(row: Row) -> bool:
    return row.verdict in (*WITH_SPEEDUP, Verdict.TOO_SHORT)


def recompute_row(pair: PairResult, row: Row) -> Row:
    new_row = recompute.row(pair.arms, row.variant, row.versus, pair.noise_floor or 0.0, row.precision)
    return replace(new_row, notes=row.notes)


def arms_of(data: dict[str, Any], limits: dict[str, Any]) -> dict[str, Arm]:
    """The arms with what the old form only implies: the clock's floor, the precision, and the amounts of work."""
    arms = {label: Arm(**arm) for label, arm in data["arms"].items()}
    for row in data["rows"]:
        for text, label in [(row["reason"], row["variant"]), *((note, "") for note in row["notes"])]:
            if "the clock's own floor of" in text:
                facts = finding_of(text).facts
                whose = facts.get("whose") or label
                arms[whose] = replace(arms[whose], floor_s=facts["floor_us"] * 1e-6)
        for label, value in row["vs_library"].items():
            arms[label] = replace(arms[label], precision=value.get("precision", ""))
    arms |= unstated_floors(data["rows"], arms)
    return {label: replace(arm, cost=cost_of(arm, data["cost"], limits)) for label, arm in arms.items()}


def unstated_floors(rows: list[dict[str, Any]], arms: dict[str, Arm]) -> dict[str, Arm]:
    """The libraries that no row is compared with, since they are below the clock's resolution, with its floor.

    Early records do not state it: it is then another arm's, or the least with which the library is too short.
    """
    complete_rows = [row for row in rows if row["interval"]]
    floors = [arm.floor_s for arm in arms.values() if arm.floor_s]
    with_floor = {}
    for label, arm in arms.items():
        is_library = label.split("/")[0] in LIBRARY_KINDS and not recompute.is_short(arm)
        if complete_rows and is_library and not any(label in row["vs_library"] for row in complete_rows):
            if arm.median_s > LEAST_S:
                raise UserError(f"no row says how it compares with {label}")
            least_s = arm.median_s / recompute.FLOOR_TIMES * (1 + 1e-4)
            with_floor[label] = replace(arm, floor_s=max([least_s, *floors]))
    return with_floor


def cost_of(arm: Arm, cost: dict[str, float], limits: dict[str, Any]) -> dict[str, float]:
    """The amounts of an arm's work where the baseline's have other names: those that give the share it states."""

    def gives(amounts: dict[str, float]) -> bool:
        result = recompute.with_shares(replace(arm, cost=amounts), cost, limits)
        same = is_near(result.of_limit, arm.of_limit) and is_near(result.of_datasheet, arm.of_datasheet)
        return same and result.limit_by == (arm.limit_by or recompute.limit_time(cost, limits)[1])

    if gives({}):
        return {}
    other_amounts = {key: amount for key, amount in cost.items() if not key.endswith("_flops")}
    flops = sum(amount for key, amount in cost.items() if key.endswith("_flops"))
    candidates = ({**other_amounts, key: flops} for key in limits if key.endswith("_flops"))
    if match := next(filter(gives, candidates), None):
        return match
    raise UserError(f"no amounts of work give {arm.of_limit} of the limit")


def row_of(data: dict[str, Any], arms: dict[str, Arm], pair: dict[str, Any]) -> Row:
    verdict = Verdict("crashed" if data["verdict"] == "died" else data["verdict"])
    on_device = pair["clock"] == "device"  # the device's clock begins with a cold L2: this note was wrong there
    notes = [note for note in data["notes"] if not (on_device and note.startswith("fits in the cache"))]
    known_notes = [note_of(note, data["variant"], arms) for note in notes]
    reason = finding_of(data["reason"]) if data["reason"] and verdict not in WITH_SPEEDUP else None
    interval = tuple(data["interval"]) if data["interval"] else None
    return Row(**{**data, "verdict": verdict, "reason": reason, "interval": interval, "notes": known_notes})


def is_near(first: Any, second: Any) -> bool:
    """Whether two figures, or lists of them, are the same."""
    if isinstance(first, float | int) and isinstance(second, float | int):
        return abs(first - second) <= NEAR * max(abs(first), abs(second)) + 1e-12
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(is_near, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return [*first] == [*second] and all(is_near(first[key], second[key]) for key in first)
    return bool(first == second)


def compare(data: dict[str, Any], pair: PairResult) -> None:
    """Raises UserError where a figure that the old form states does not follow from its samples."""
    for name in ("noise_floor", "limit_s", "limit_by"):
        require(name, data[name], getattr(pair, name))
    for label, arm in data["arms"].items():
        for name in ("median_s", "of_limit", "of_datasheet"):
            require(f"{label} {name}", arm[name], getattr(pair.arms[label], name))
    for old, row in zip(data["rows"], pair.rows, strict=True):
        place = f"{row.variant} vs {row.versus}"
        require(f"{place} verdict", "crashed" if old["verdict"] == "died" else old["verdict"], row.verdict)
        require(f"{place} reason", in_new_words(old["reason"]), words.text(row.reason))
        for name in ("ratio", "interval", "vs_library"):
            require(f"{place} {name}", old[name], getattr(row, name))


def require(what: str, says: Any, gives: Any) -> None:
    if not is_near(says, gives):
        raise UserError(f"{what} is {says}, its samples give {gives}")


def read(path: Path) -> Any:
    """A file's JSON. Raises UserError."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None


def convert(path: Path) -> None:
    """Convert a file in its place. Raises UserError before anything is written."""
    data = read(path)
    if is_old_calibration(data):
        convert_calibration(data, path)
        return
    if not isinstance(data, dict) or data.get("schema") != OLD:
        raise UserError(f"{path}: not of the form of schema {OLD}: nothing to convert")
    try:
        converted = record_of(data)
    except (UserError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: {type(error).__name__ if not isinstance(error, UserError) else ''}{error}") from None
    save_records([converted], path)


def is_old_calibration(data: Any) -> bool:
    return isinstance(data, dict) and "known" in data and data.get("schema") == findings.SCHEMA - 1


def convert_calibration(data: dict[str, Any], path: Path) -> None:
    """Reasons that say that a run alone contradicts become the name of that cause. Raises UserError."""
    for run in [run for runs in [*data["runs"].values(), data["nothing"]] for run in runs]:
        for conclusion in run["said"].values():
            conclusion["verdict"] = "crashed" if conclusion["verdict"] == "died" else conclusion["verdict"]
            if conclusion["reason"].startswith("beside the others "):
                conclusion["reason"] = Cause.CONTRADICTED_ALONE.value
    calibration: findings.Findings = msgspec.convert({**data, "schema": findings.SCHEMA}, findings.Findings)
    files.write_text(path, findings.to_json(calibration))


def run(argv: Sequence[str]) -> int:
    """Parse the arguments and convert. Raises UserError."""
    parser = Parser("python -m tools.convert_records", description=str(__doc__).partition("\n\n")[2])
    parser.add_argument("file", nargs="+", type=Path, help="a file of the old form")
    args = parser.parse_args(argv)
    for path in args.file:
        convert(path)
        print(f"{path}: converted")
    return 0


if __name__ == "__main__":
    finish(lambda: status_of("convert", lambda: run(sys.argv[1:])))
