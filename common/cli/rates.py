"""The rates of GPUs that times are predicted with: as recorded where a GPU was measured, else its datasheet's."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.hardware import sheet
from common.hardware.sheet import Sheet
from common.machine.device import DATASHEETS, datasheet
from common.record import archive
from common.record.files import Problems
from common.record.result import PairResult
from common.show.formats import bandwidth, seconds
from common.traffic.predict import Rates
from common.xray.occupancy import Machine


@dataclass(frozen=True)
class Source:
    """A version whose recorded time is a rate."""

    chapter: str
    name: str
    label: str


LAUNCH = Source("ch4", "batched_matmul", "baseline")  # many small kernels in a row, by the GPU's clock
ISSUE = Source("ch3", "add_small", "baseline")  # a small kernel through Triton's own launcher, by the wall's


def rates_for(machine: Machine) -> Rates | None:
    """Those of the GPU of this capability that was measured last, else of the first with a datasheet; None if neither.

    A bad file under recorded/ is as good as none: `make readme` names it.
    """
    found = measured({})
    for path, each in found:
        if tuple(each.environment["device"]["capability"]) == machine.capability:
            return of_sheet(each, path.parent)
    names = json.loads(DATASHEETS.read_text(encoding="utf-8"))
    name = next((name for name in names if machine.name in name), "")
    launches = next((times for path, _ in found if (times := of_launches(path.parent))), None)
    if not name or launches is None:
        return None
    peaks, source = datasheet(name)
    said = f"{source}; its L2 is taken for no limit; {_said(*launches)} on {found[0][1].environment['device']['name']}"
    return Rates(name, peaks["dram_bytes"], peaks, *launches, source=said)


def measured(problems: Problems | None) -> Sequence[tuple[Path, Sheet]]:
    """The recorded datasheets of GPUs, newest first; bad files as of Format.recorded."""
    found = sheet.FORMAT.recorded(sheet.FILE, problems=problems)
    return [(path, each) for path, each in found if each.environment["device"]["kind"] == "cuda"]


def of_sheet(found: Sheet, folder: Path) -> Rates | None:
    """As measured; None where nothing says what a launch takes there."""
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
    """What a launch takes, and what it takes the host to issue one, as recorded for the device of this folder."""
    launch, issue = _recorded(LAUNCH, folder), _recorded(ISSUE, folder)
    if launch is None or issue is None:
        return None
    return launch.arms[LAUNCH.label].median_s / launch.sizes["batch"], issue.arms[ISSUE.label].median_s


def _recorded(what: Source, folder: Path) -> PairResult | None:
    """The newest at the default size, with this version timed."""
    records = [record for path, record in archive.recorded(what.chapter, problems={}) if path.parent == folder]
    results = (result for record in records for result in record.pairs)
    named = ((result.name, result.size) == (what.name, "default") and result for result in results)
    return next((result for result in named if result and what.label in result.arms), None)
