"""A machine's datasheet: frozen dataclass <-> one versioned JSON file, kept until the machine is another.

Units: bytes, seconds, bytes per second, FLOP/s; cycles are those of an SM. `sheet.schema.json` describes the file.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.isolation import process
from common.machine.device import versions
from common.machine.survey import DeviceError, survey_apart
from common.pairs.pair import ROOT
from common.record.files import Format, RecordError, file_of_device, noting, write_text

SCHEMA = 1
FILE = "hardware.json"
CACHE = ROOT / "results" / "hardware"
Say = Callable[[str, float], None]  # stage, the part of all that is done


@dataclass(frozen=True)
class Sheet:
    """What a machine is and what it reaches. A list that is empty, a key that is missing: not to be had there."""

    schema: int
    environment: dict[str, Any]  # device: see common.machine.device.describe; versions; date
    facts: list[dict[str, Any]]  # name, value, unit, source; in the order in which they are shown
    limits: dict[str, dict[str, Any]]  # cost key -> common.machine.limits.Limit
    bandwidth: dict[str, list[list[float]]]  # read, write, copy, ... -> [working set in bytes, bytes per second]
    latency: list[list[float]]  # of one load after the other: [working set in bytes, SM cycles, seconds]
    levels: dict[str, dict[str, Any]]  # L1, L2, ..., DRAM -> bytes (the working set looked at) and what was found there
    transfers: dict[str, list[list[float]]]  # "host to device, pinned", "cuda:0 to cuda:1", ... -> [bytes, bytes/s]
    links: list[dict[str, Any]]  # of each two GPUs: between, peer_access, link, source


def silent(stage: str, fraction: float) -> None:
    """Say nothing of how far it is."""


def measure(device: str, say: Say = silent) -> Sheet:
    """Measure a device in this process, which has better done nothing else with it. Raises ValueError."""
    from common.hardware.cpu import measure_cpu
    from common.hardware.gpu import measure_gpu
    from common.machine.device import describe, use_device

    say("device", 0.0)
    info = describe(device)
    use_device(device)
    environment = {"device": info, "versions": versions(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
    parts = measure_gpu(device, info, say) if info["kind"] == "cuda" else measure_cpu(info, say)
    return Sheet(SCHEMA, environment, **parts)


def measured_apart(device: str, say: Say = silent) -> Sheet:
    """The same in a process of its own, after which nothing is left on the device. Raises DeviceError."""
    try:
        return process.call(measure, device, on_progress=say)
    except process.Death as death:
        raise DeviceError(str(death).removeprefix("ValueError: ").removeprefix("RuntimeError: ")) from None


FORM = Path(__file__).with_name("sheet.schema.json")
FORMAT = Format("a machine's datasheet", SCHEMA, lambda data: Sheet(**data), form=FORM)


def save(sheet: Sheet, path: Path | str) -> None:
    """Write a sheet into a folder that exists. Raises RecordError."""
    write_text(Path(path), json.dumps(asdict(sheet), indent=1, allow_nan=False) + "\n")


def cached_or_measured(
    device: str, fresh: bool = False, say: Say = silent, folder: Path | None = None, unwritten: list[str] | None = None
) -> Sheet:
    """A device's sheet: as kept by an earlier call, if that was of this very device, driver and version of torch.

    Else, or if `fresh`, it is measured now and kept; that it cannot be kept is a line in `unwritten`, or a warning
    where there is no such list. Raises DeviceError.
    """
    info, _ = survey_apart(device, with_limits=False)
    problems: list[str] = [] if unwritten is None else unwritten
    if fresh or (sheet := _kept(info, folder)) is None:
        sheet = measured_apart(device, say)
        with noting(problems):
            save(sheet, cache_file(info, folder))
    if problems and unwritten is None:
        warnings.warn(problems[0], stacklevel=2)
    return sheet


def _kept(info: dict[str, Any], folder: Path | None) -> Sheet | None:
    """The sheet of this device in the cache; one that cannot be read is as good as none."""
    try:
        sheet = FORMAT.load(cache_file(info, folder))
    except RecordError:
        return None
    return sheet if _identity(sheet.environment) == _identity({"device": info, "versions": versions()}) else None


def cache_file(info: dict[str, Any], folder: Path | None = None) -> Path:
    """Where a device's sheet is kept: a file for each GPU and driver, in a folder that is made. Raises RecordError."""
    name = f"{info['driver']}_{info['uuid']}" if info["kind"] == "cuda" else "cpu"
    return file_of_device({"device": info}, f"{name}.json", folder or CACHE)


def _identity(environment: dict[str, Any]) -> tuple[Any, ...]:
    """What makes a sheet one of this machine: on another of these it would be another."""
    device = environment["device"]
    parts = [device.get(key) for key in ("name", "uuid", "driver", "threads", "gpus")]
    return (*parts, environment["versions"].get("torch"))


def recorded(folder: Path | None = None) -> Sheet | None:
    """The newest of a GPU; None if there is none. Raises RecordError."""
    sheets = (sheet for _, sheet in FORMAT.recorded(FILE, folder) if sheet.environment["device"]["kind"] == "cuda")
    return next(sheets, None)


def keep(sheet: Sheet, folder: Path | None = None) -> Path:
    """Save a sheet as recorded/<device>/hardware.json. Raises RecordError."""
    save(sheet, path := file_of_device(sheet.environment, FILE, folder))
    return path
