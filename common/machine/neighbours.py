"""Who else used this machine while a pair was measured: other processes, another run of the course, a GPU's others.

It is information and no verdict: what a neighbour does to the samples shows in the A/A control and in the intervals.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pynvml

from common.isolation.family import family
from common.isolation.server import PRELOADED
from common.machine.device import nvml_handle

# of a core: an idle desktop's processes need a tenth of that each, whatever really computes needs a whole one
BUSY_CORES = 0.2
BUSY_SHARE = 0.05  # of all cores: what a large server's own services need together
SERVER = ("multiprocessing.forkserver", PRELOADED[-1])  # in the command line of every run's forkserver
SELF_TIMES = ("user", "system", "children_user", "children_system")  # children_*: of those that have ended


@dataclass(frozen=True)
class Look:
    """What was to be seen at one moment. Seconds are of CPU time since whenever."""

    at_s: float
    busy_s: float  # all cores together
    ours_s: float  # this process and all below it, those included that have ended
    others: dict[psutil.Process, float]
    at_work: dict[str, str]  # who -> what it is doing right now, on the GPU or as another run of the course


@contextmanager
def watch(uuid: str | None, tell: Callable[[dict[str, str]], None], on: bool = True) -> Iterator[dict[str, str]]:
    """Yields what in the end holds who did what meanwhile, and is told to `tell` as soon as it is known."""
    found: dict[str, str] = {}
    if not on:
        yield found
        return
    before = look(uuid)
    tell(before.at_work)
    yield found
    found |= used(before, look(uuid))
    tell(found)


def look(uuid: str | None) -> Look:
    """`uuid`: of the GPU that is measured on, if it is one."""
    ours, ours_s = {psutil.Process(), *family()}, 0.0
    others: dict[psutil.Process, float] = {}
    for process in psutil.process_iter(["cpu_times", "cmdline", "ppid"]):
        times = process.info["cpu_times"]  # None where it is not ours to know
        if times and process in ours:
            ours_s += sum(getattr(times, field, 0.0) for field in SELF_TIMES)
        elif times:
            others[process] = times.user + times.system
    gpu = _on_gpu(uuid, {process.pid for process in ours}) if uuid else {}
    return Look(time.monotonic(), _busy_s(), ours_s, others, gpu | _other_runs(others))


def used(before: Look, after: Look) -> dict[str, str]:
    """who -> what they did to this machine between two looks."""
    elapsed_s = after.at_s - before.at_s
    cores = {who: (spent - before.others.get(who, 0.0)) / elapsed_s for who, spent in after.others.items()}
    busy = {who: share for who, share in cores.items() if share > BUSY_CORES}
    found = {_name(who.pid): f"kept {share:.1f} cores busy" for who, share in busy.items()}
    rest = (after.busy_s - before.busy_s - after.ours_s + before.ours_s) / elapsed_s - sum(busy.values())
    if rest > max(BUSY_CORES, BUSY_SHARE * (os.cpu_count() or 1)):  # ended since, not visible, or small and many
        found["other processes"] = f"kept {rest:.1f} cores busy"
    return found | before.at_work | after.at_work


def _busy_s() -> float:
    """Time that any core was at work; 0 where the time of children that have ended is not known to subtract."""
    times = psutil.cpu_times()
    fields = ("user", "nice", "system", "irq", "softirq") if sys.platform == "linux" else ()
    return float(sum(getattr(times, field) for field in fields))


def _other_runs(others: Collection[psutil.Process]) -> dict[str, str]:
    """Whoever has a pair in its own process right now: below the forkserver of a run, be it a program or a notebook."""
    commands = {process: " ".join(process.info["cmdline"] or ()) for process in others}
    servers = {process.pid for process, command in commands.items() if all(words in command for words in SERVER)}
    at_work = {process.info["ppid"] for process in others} & servers
    runs = {process.info["ppid"] for process in others if process.pid in at_work} - servers
    return {_name(pid): "is measuring pairs of the course, too" for pid in runs}


def _on_gpu(uuid: str, ours: set[int]) -> dict[str, str]:
    with suppress(pynvml.NVMLError):  # some virtual GPUs do not tell, and one that a pair has broken cannot
        found = pynvml.nvmlDeviceGetComputeRunningProcesses(nvml_handle(uuid))
        return {_name(process.pid): "uses this GPU, too" for process in found if process.pid not in ours}
    return {}


def _name(pid: int) -> str:
    """A process as its owner knows it: its name, a Python program's file, its number."""
    try:
        process = psutil.Process(pid)
        name, words = process.name(), process.cmdline()
    except psutil.Error:  # it has ended, or is outside of this container
        return f"a process not to be seen from here (pid {pid})"
    program = [Path(word).name for word in words[1:2] if word.endswith(".py")]
    return f"{' '.join([name, *program])} (pid {pid})"
