"""The record of a run: frozen dataclasses <-> one versioned JSON file, whose raw samples give every verdict again.

Units: seconds, bytes, FLOPs (one FMA = 2), ratios without unit. `record.schema.json` describes the file.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from common.pairs.contract import OneLine

SCHEMA = 2
SCHEMA_FILE = Path(__file__).with_name("record.schema.json")
BELIEVED = ("faster", "slower", "same", "unsure")  # verdicts that come with a ratio


class RecordError(OneLine):
    """A file that is not a record of ours, or that cannot be written."""


FAILED = ("invalid", "died")  # verdicts


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


def load_record(path: Path | str) -> Record:
    """Read a record, check its form, and compute its figures again from its samples. Raises RecordError."""
    import jsonschema  # 0.9 s to import: only where a file comes from outside

    from common.record.figures import contradiction  # imports numpy

    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: not JSON ({error})") from None
    version = data.get("schema") if isinstance(data, dict) else None
    if type(version) is int and version != SCHEMA:  # True is no version
        age = "a newer" if version > SCHEMA else "an older"
        raise RecordError(f"{path}: written by {age} version of the course (schema {version}; this one reads {SCHEMA})")
    try:
        jsonschema.validate(data, json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    except jsonschema.ValidationError as error:
        raise RecordError(f"{path}: not a benchmark record ({error.json_path}: {error.message[:120]})") from None
    record = from_dict(data)
    if wrong := contradiction(record):
        raise RecordError(f"{path}: a record whose figures do not follow from its samples ({wrong})")
    return record


def check_writable(path: Path, makes_folder: bool = False) -> None:
    """Raises RecordError if a file could not be written there; `makes_folder`: its folder need not exist yet."""
    if path.exists() and not path.is_file() and not (makes_folder and path.is_dir()):  # /dev/null would be replaced
        raise RecordError(f"{path}: cannot be written (it is {'a folder' if path.is_dir() else 'no regular file'})")
    folder = next(parent for parent in path.parents if parent.exists() or not makes_folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RecordError(f"{path}: cannot be written ({error.strerror or error})") from None


def write_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Atomically: a reader sees the old file or the whole new one, never a half. Raises RecordError."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)  # mkstemp makes it private
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RecordError(f"{path}: cannot be written ({error.strerror or error})") from None


def write_text(path: Path, text: str) -> None:
    """The same of a text. Raises RecordError."""
    write_file(path, lambda file: file.write(text.encode()))


@contextmanager
def noting(problems: list[str]) -> Iterator[None]:
    """A file that cannot be written is a line in `problems`: no reason to lose the run that it is of."""
    try:
        yield
    except RecordError as error:
        problems.append(str(error))


def save_record(record: Record, path: Path | str) -> None:
    """Write a record into a folder that exists. Raises RecordError."""
    write_text(Path(path), to_json(record) + "\n")


def file_of_device(environment: dict[str, Any], name: str, folder: Path) -> Path:
    """A file in a device's folder, which is made if need be. Raises RecordError."""
    device = "".join(c if c.isalnum() else "_" for c in environment["device"]["name"].lower()).strip("_")
    path = folder / device / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(f"{path}: cannot be written ({error.strerror or error})") from None
    return path
