"""The rates of GPUs that times are predicted with: as recorded where a GPU was measured, else its datasheet's."""

import json
from collections.abc import Sequence
from pathlib import Path

from common.hardware import sheet
from common.hardware.sheet import Sheet
from common.machine.device import DATASHEETS, datasheet
from common.record import archive
from common.record.files import Problems
from common.show.formats import bandwidth, seconds
from common.traffic.predict import Rates
from common.xray.occupancy import Machine

CHAPTER, SMALL = "ch3", "add_small"  # one launch of a kernel that has next to nothing to do
LAUNCH, ISSUE = "optimized", "baseline"  # with next to no work of the host's; through Triton's own launcher


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
    said = f"a launch {seconds(launch_s)}, {seconds(issue_s)} to issue it from Python"
    return f"{said}: the times of {SMALL} {LAUNCH} and {ISSUE}"


def of_launches(folder: Path) -> tuple[float, float] | None:
    """What a launch takes, and what it takes the host to issue one, as recorded for the device of this folder."""
    for path, record in archive.recorded(CHAPTER, problems={}):
        for result in record.pairs if path.parent == folder else []:
            if (result.name, result.size) == (SMALL, "default") and {LAUNCH, ISSUE} <= result.arms.keys():
                return result.arms[LAUNCH].median_s, result.arms[ISSUE].median_s
    return None
