"""A machine's datasheet: frozen dataclass <-> one versioned JSON file, kept while the machine is unchanged.

Units: bytes, seconds, bytes per second, FLOP/s; cycles are SM cycles.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from common.isolation import worker
from common.machine.device import versions
from common.machine.survey import DeviceError, survey_apart
from common.pairs.pair import ROOT
from common.record.files import Format, RecordError, file_of_device, note_errors, on_one_gpu, utc_now, write_json
from common.record.form import Count, Limit, Strict

SCHEMA = 1
FILE = "hardware.json"
CACHE = ROOT / "results" / "hardware"
Say = Callable[[str, float], None]  # (stage, fraction that is done)


@dataclass(frozen=True)
class Sheet:
    """The facts and rates of a machine. An empty list or a missing key: not available there."""

    schema: int
    environment: dict[str, Any]  # device: see common.machine.device.describe; versions; date
    facts: list[dict[str, Any]]  # name, value, unit, source; in the order of display
    limits: dict[str, dict[str, Any]]  # cost key -> common.machine.limits.Limit
    bandwidth: dict[str, list[list[float]]]  # read, write, copy, ... -> [working set in bytes, bytes per second]
    latency: list[list[float]]  # of dependent loads: [working set in bytes, SM cycles, seconds]
    levels: dict[str, dict[str, Any]]  # L1, ..., DRAM -> bytes of the working set, and figures
    transfers: dict[str, list[list[float]]]  # "host to device, pinned", "cuda:0 to cuda:1", ... -> [bytes, bytes/s]
    links: list[dict[str, Any]]  # between each two GPUs: between, peer_access, link, source


def no_progress(stage: str, fraction: float) -> None:
    """Report no progress."""


def measure(device: str, say: Say = no_progress) -> Sheet:
    """Measure a device in this process, which should do nothing else with it. Raises ValueError."""
    from common.hardware.cpu_sheet import measure_cpu
    from common.hardware.gpu_sheet import measure_gpu
    from common.machine.device import describe, use_device

    say("device", 0.0)
    info = describe(device)
    use_device(device)
    environment = {"device": info, "versions": versions(), "date": utc_now()}
    parts = measure_gpu(device, info, say) if info["kind"] == "cuda" else measure_cpu(info, say)
    return Sheet(SCHEMA, environment, **parts)


def measure_in_child(device: str, say: Say = no_progress) -> Sheet:
    """The same in a child process, so that nothing is left on the device. Raises DeviceError."""
    try:
        return worker.call(measure, device, on_progress=say)
    except worker.ChildFailed as death:
        raise DeviceError(str(death).removeprefix("ValueError: ").removeprefix("RuntimeError: ")) from None


Positive = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)]
Pair = Annotated[list[Positive], Meta(min_length=2, max_length=2)]


class Fact(Strict, frozen=True):
    name: str
    value: str | int | float
    unit: str
    source: str


class Link(Strict, frozen=True):
    between: Annotated[list[Count], Meta(min_length=2, max_length=2)]
    peer_access: bool
    link: str
    source: str


class SheetFile(Strict, frozen=True):
    """What a file must have to be a Sheet."""

    schema: int
    environment: dict[str, Any]
    facts: Annotated[list[Fact], Meta(min_length=1)]
    limits: dict[str, Limit]
    bandwidth: dict[str, list[Pair]]
    latency: list[Annotated[list[Positive], Meta(min_length=3, max_length=3)]]
    levels: dict[str, dict[str, Positive]]
    transfers: dict[str, list[Pair]]
    links: list[Link]


def _sheet(file: SheetFile) -> Sheet:
    """Raises KeyError or ValueError for what a form cannot say."""
    device, _, _ = (file.environment[key] for key in ("device", "versions", "date"))
    if device["kind"] not in ("cpu", "cuda") or not (device["name"] and file.bandwidth["read"]):
        raise ValueError("it needs a device with a name, and how fast that reads")
    for level in file.levels.values():
        level["bytes"]
    return Sheet(**msgspec.to_builtins(file))


FORMAT = Format("a machine's datasheet", SCHEMA, SheetFile, _sheet)


def save(sheet: Sheet, path: Path | str) -> None:
    """Write a sheet into a folder that exists. Raises RecordError."""
    write_json(Path(path), sheet)


def cached_or_measured(
    device: str,
    fresh: bool = False,
    say: Say = no_progress,
    folder: Path | None = None,
    unwritten: list[str] | None = None,
) -> Sheet:
    """A device's sheet: an earlier call's, if this device, driver and version of torch are unchanged.

    Otherwise, or if `fresh`, it is measured now and kept. If it cannot be kept, `unwritten` gets a line, or a warning
    is given without that list. Raises DeviceError.
    """
    info, _ = survey_apart(device, with_limits=False)
    problems: list[str] = [] if unwritten is None else unwritten
    if fresh or (sheet := _cached_sheet(info, folder)) is None:
        sheet = measure_in_child(device, say)
        with note_errors(problems):
            save(sheet, cache_file(info, folder))
    if problems and unwritten is None:
        warnings.warn(problems[0], stacklevel=2)
    return sheet


def _cached_sheet(info: dict[str, Any], folder: Path | None) -> Sheet | None:
    """The sheet of this device in the cache; None without a readable one."""
    try:
        sheet = FORMAT.load(cache_file(info, folder))
    except RecordError:
        return None
    return sheet if _identity(sheet.environment) == _identity({"device": info, "versions": versions()}) else None


def cache_file(info: dict[str, Any], folder: Path | None = None) -> Path:
    """The file of a device's sheet: one per GPU and driver, in a folder that is created. Raises RecordError."""
    name = f"{info['driver']}_{info['uuid']}" if info["kind"] == "cuda" else "cpu"
    return file_of_device({"device": info}, f"{name}.json", folder or CACHE)


def _identity(environment: dict[str, Any]) -> tuple[Any, ...]:
    """What identifies a sheet's machine: if any of it differs, the sheet is not used."""
    device = environment["device"]
    parts = [device.get(key) for key in ("name", "uuid", "driver", "threads", "gpus")]
    return (*parts, environment["versions"].get("torch"))


def recorded_sheet(folder: Path | None = None) -> Sheet | None:
    """The recorded sheet of one GPU (`on_one_gpu`); None without one. Raises RecordError."""
    return next((sheet for _, sheet in on_one_gpu(FORMAT.load_all(FILE, folder))), None)


def keep(sheet: Sheet, folder: Path | None = None) -> Path:
    """Save a sheet as recorded/<device>/hardware.json. Raises RecordError."""
    save(sheet, path := file_of_device(sheet.environment, FILE, folder))
    return path
