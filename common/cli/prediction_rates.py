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
class Source:
    """A version whose recorded time serves as a rate."""

    chapter: str
    name: str
    label: str


LAUNCH = Source("ch4", "batched_matmul", "baseline")  # many small kernels in a row, on the GPU's clock
ISSUE = Source("ch3", "add_small", "baseline")  # a small kernel through Triton's own launcher, on the wall clock


def rates_for(machine: Machine) -> Rates | None:
    """Rates of a measured GPU of this capability (`on_one_gpu`), else of the first datasheet that fits; else None.

    A bad file under recorded/ counts as missing: `make readme` names it.
    """
    found = measured({})
    fitting = [item for item in found if tuple(item[1].environment["device"]["capability"]) == machine.capability]
    for path, each in on_one_gpu(fitting):
        return of_sheet(each, path.parent)
    names = json.loads(DATASHEETS.read_text(encoding="utf-8"))
    name = next((name for name in names if machine.name in name), "")
    launches = [(times, each) for path, each in found if (times := of_launches(path.parent))]
    if not name or not launches:
        return None
    (times, other), (peaks, source) = launches[0], datasheet(name)
    said = f"{source}; its L2 is no limit; {_said(*times)} on {other.environment['device']['name']}"
    return Rates(name, peaks["dram_bytes"], peaks, *times, source=said)


def measured(problems: Problems | None) -> Sequence[tuple[Path, Sheet]]:
    """The recorded datasheets of GPUs, newest first. Bad files are treated as in Format.recorded."""
    found = sheet.FORMAT.recorded(sheet.FILE, problems=problems)
    return [(path, each) for path, each in found if each.environment["device"]["kind"] == "cuda"]


def of_sheet(found: Sheet, folder: Path) -> Rates | None:
    """A measured GPU's rates; None if no record shows the time of a launch there."""
    launches = of_launches(folder)
    peaks = {key: limit["measured"] for key, limit in found.limits.items() if limit["measured"]}
    l2 = found.levels.get("L2", {})
    if launches is None or "dram_bytes" not in peaks:
        return None
    ways = [f"L2 {way} {bandwidth(l2[way])}" for way in ("read", "write") if way in l2]
    said = ", ".join([f"memory {bandwidth(peaks['dram_bytes'])}", *ways])
    name = found.environment["device"]["name"]
    source = f"{name} as measured: {said}, products and pinned copies as in its hardware.json; {_said(*launches)}"
    return Rates(name, peaks["dram_bytes"], peaks, *launches, l2.get("read"), l2.get("write"), source)


def _said(launch_s: float, issue_s: float) -> str:
    return (
        f"a launch {seconds(launch_s)} ({LAUNCH.name} {LAUNCH.label}, by its number of launches),"
        f" {seconds(issue_s)} to issue it from Python ({ISSUE.name} {ISSUE.label})"
    )


def of_launches(folder: Path) -> tuple[float, float] | None:
    """(Seconds of a launch, the host's seconds to issue one) as recorded for this folder's device; None if missing."""
    launch, issue = _recorded(LAUNCH, folder), _recorded(ISSUE, folder)
    if launch is None or issue is None:
        return None
    return launch.arms[LAUNCH.label].median_s / launch.sizes["batch"], issue.arms[ISSUE.label].median_s


def _recorded(what: Source, folder: Path) -> PairResult | None:
    """The newest result at the default size in which this version was timed."""
    records = [record for path, record in store.chapter_records(what.chapter, problems={}) if path.parent == folder]
    results = (result for record in records for result in record.pairs)
    named = ((result.name, result.size) == (what.name, "default") and result for result in results)
    return next((result for result in named if result and what.label in result.arms), None)
