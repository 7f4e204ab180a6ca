"""The rates that times are predicted with: a GPU's recorded rates, or its datasheet's if it was not measured."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.hardware import sheet
from common.hardware.sheet import Sheet
from common.machine.device import DATASHEETS, datasheet
from common.record import store
from common.record.files import Problems, on_one_gpu
from common.record.result import PairResult
from common.show.formats import bandwidth, seconds
from common.traffic.least_time import Rates
from common.xray.occupancy import Machine


@dataclass(frozen=True)
class RateSource:
    """A version whose recorded time serves as a rate."""

    chapter: str
    name: str
    label: str


LAUNCH = RateSource("ch4", "batched_matmul", "baseline")  # many small kernels in a row, on the GPU's clock
ISSUE = RateSource("ch3", "add_small", "baseline")  # a small kernel through Triton's own launcher, on the wall clock


def rates_for(machine: Machine) -> Rates | None:
    """Rates of a measured GPU of this capability (`on_one_gpu`), else of the first datasheet that fits; else None.

    A bad file under recorded/ counts as missing: `make readme` names it.
    """
    sheets = measured_sheets({})
    fitting = [item for item in sheets if tuple(item[1].environment["device"]["capability"]) == machine.capability]
    for path, gpu_sheet in on_one_gpu(fitting):
        return rates_of_sheet(gpu_sheet, path.parent)
    names = json.loads(DATASHEETS.read_text(encoding="utf-8"))
    name = next((name for name in names if machine.name in name), "")
    launches = [(times, gpu_sheet) for path, gpu_sheet in sheets if (times := launch_times(path.parent))]
    if not name or not launches:
        return None
    (times, other), (peaks, source) = launches[0], datasheet(name)
    source_text = f"{source}; its L2 is no limit; {_launch_text(*times)} on {other.environment['device']['name']}"
    return Rates(name, peaks["dram_bytes"], peaks, *times, source=source_text)


def measured_sheets(problems: Problems | None) -> Sequence[tuple[Path, Sheet]]:
    """The recorded datasheets of GPUs, newest first. Bad files are treated as in Format.load_all."""
    sheets = sheet.FORMAT.load_all(sheet.FILE, problems=problems)
    return [(path, gpu_sheet) for path, gpu_sheet in sheets if gpu_sheet.environment["device"]["kind"] == "cuda"]


def rates_of_sheet(gpu_sheet: Sheet, folder: Path) -> Rates | None:
    """A measured GPU's rates; None if no record shows the time of a launch there."""
    launches = launch_times(folder)
    peaks = {key: limit["measured"] for key, limit in gpu_sheet.limits.items() if limit["measured"]}
    l2 = gpu_sheet.levels.get("L2", {})
    if launches is None or "dram_bytes" not in peaks:
        return None
    ways = [f"L2 {way} {bandwidth(l2[way])}" for way in ("read", "write") if way in l2]
    memory = ", ".join([f"memory {bandwidth(peaks['dram_bytes'])}", *ways])
    name = gpu_sheet.environment["device"]["name"]
    source = (
        f"{name} as measured: {memory}, products and pinned copies as in its hardware.json; {_launch_text(*launches)}"
    )
    return Rates(name, peaks["dram_bytes"], peaks, *launches, l2.get("read"), l2.get("write"), source)


def _launch_text(launch_s: float, issue_s: float) -> str:
    return (
        f"a launch {seconds(launch_s)} ({LAUNCH.name} {LAUNCH.label}, by its number of launches),"
        f" {seconds(issue_s)} to issue it from Python ({ISSUE.name} {ISSUE.label})"
    )


def launch_times(folder: Path) -> tuple[float, float] | None:
    """(Seconds of a launch, the host's seconds to issue one) as recorded for this folder's device; None if missing."""
    launch, issue = _newest_result(LAUNCH, folder), _newest_result(ISSUE, folder)
    if launch is None or issue is None:
        return None
    return launch.arms[LAUNCH.label].median_s / launch.sizes["batch"], issue.arms[ISSUE.label].median_s


def _newest_result(what: RateSource, folder: Path) -> PairResult | None:
    """The newest result at the default size in which this version was timed."""
    records = [record for path, record in store.chapter_records(what.chapter, problems={}) if path.parent == folder]
    results = (result for record in records for result in record.pairs)
    at_default = (result for result in results if (result.name, result.size) == (what.name, "default"))
    return next((result for result in at_default if what.label in result.arms), None)
