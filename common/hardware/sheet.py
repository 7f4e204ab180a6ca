"""A machine's datasheet: one versioned JSON file, kept while the machine is unchanged.

Units: bytes, seconds, bytes per second, FLOP/s; cycles are SM cycles.
"""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta

from common.isolation import worker
from common.machine.device import versions
from common.machine.survey import DeviceError, survey_apart
from common.pairs.interpreter import environment_on
from common.pairs.pair import ROOT
from common.record.files import Format, RecordError, file_of_device, note_errors, on_one_gpu, utc_now, write_text
from common.record.form import Count, Strict

SCHEMA = 1
FILE = "hardware.json"
CACHE = ROOT / "results" / "hardware"
Say = Callable[[str, float], None]  # (stage, fraction that is done)
Positive = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)]
Pair = Annotated[list[Positive], Meta(min_length=2, max_length=2)]


class Fact(Strict, frozen=True):
    name: str
    value: str | int | float
    unit: str
    source: str


class Link(Strict, frozen=True):
    """Between two GPUs, by their indices."""

    between: Annotated[list[Count], Meta(min_length=2, max_length=2)]
    peer_access: bool
    link: str
    source: str


class Limit(TypedDict):
    """See common.machine.limits.Limit: a dict, as a record's limits are."""

    measured: Positive | None
    datasheet: Positive | None
    how: str
    source: str


class Sheet(Strict, frozen=True):
    """The facts and rates of a machine. An empty list or a missing key: not available there."""

    schema: int
    environment: dict[str, Any]  # device: see common.machine.device.describe; versions; date
    facts: Annotated[list[Fact], Meta(min_length=1)]  # in the order of display
    limits: dict[str, Limit]  # by cost key
    bandwidth: dict[str, list[Pair]]  # read, write, copy, ... -> [working set in bytes, bytes per second]
    latency: list[Annotated[list[Positive], Meta(min_length=3, max_length=3)]]  # [bytes of the set, cycles, seconds]
    levels: dict[str, dict[str, Positive]]  # L1, ..., DRAM -> bytes of the working set, and figures
    transfers: dict[str, list[Pair]]  # "host to device, pinned", "cuda:0 to cuda:1", ... -> [bytes, bytes per second]
    links: list[Link]

    @property
    def values(self) -> dict[str, Any]:
        """The facts' values by name; a cache by its level only (`L3`)."""
        return {fact.name.split(", shared by")[0]: fact.value for fact in self.facts}

    @property
    def caches(self) -> dict[str, int]:
        """Bytes of each cache, nearest first. The last one is shared by all processors."""
        values = self.values
        if self.environment["device"]["kind"] == "cpu":
            return {name: size for name, size in values.items() if re.match(r"L\d", name)}
        return {"L1": values.get("L1 and shared memory per SM", values["shared memory per SM"]), "L2": values["L2"]}


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
    return msgspec.convert({"schema": SCHEMA, "environment": environment, **parts}, Sheet)


def measure_in_child(device: str, say: Say = no_progress) -> Sheet:
    """The same in a child process, so that nothing is left on the device. Raises DeviceError."""
    try:
        return worker.call(measure, device, environment=environment_on(device), on_progress=say)
    except worker.ChildFailed as death:
        raise DeviceError(str(death).removeprefix("ValueError: ").removeprefix("RuntimeError: ")) from None


def _checked(sheet: Sheet) -> Sheet:
    """Raises KeyError or ValueError for what its types cannot say."""
    device, _, _ = (sheet.environment[key] for key in ("device", "versions", "date"))
    if device["kind"] not in ("cpu", "cuda") or not (device["name"] and sheet.bandwidth["read"]):
        raise ValueError("it needs a device with a name, and how fast that reads")
    for level in sheet.levels.values():
        level["bytes"]
    return sheet


FORMAT = Format("a machine's datasheet", SCHEMA, Sheet, _checked)


def save(sheet: Sheet, path: Path | str) -> None:
    """Write a sheet into a folder that exists. Raises RecordError."""
    write_text(Path(path), json.dumps(msgspec.to_builtins(sheet), indent=1, allow_nan=False) + "\n")


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
