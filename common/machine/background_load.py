"""Other processes that used this machine or its GPU while a pair was measured, other runs of the course included.

This is information, not a verdict: their effect on the samples shows in the A/A control and in the intervals.
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

from common.isolation.forkserver import LAST
from common.isolation.process_tree import descendants
from common.machine.throttling import nvml_handle

# cores: an idle desktop's processes need a tenth of this each, a computing process needs a whole core
BUSY_CORES = 0.2
BUSY_SHARE = 0.05  # share of all cores: the services of a large server together need less
SERVER = ("multiprocessing.forkserver", LAST)  # in the command line of every run's forkserver
SELF_TIMES = ("user", "system", "children_user", "children_system")  # children_*: of ended children


@dataclass(frozen=True)
class Snapshot:
    """What is visible at one moment; CPU seconds count from an arbitrary start."""

    at_s: float
    busy_s: float  # all cores together
    ours_s: float  # this process and its descendants, ended ones included
    others: dict[psutil.Process, float]
    at_work: dict[str, str]  # process -> what it is doing now, on the GPU or as another run of the course


@contextmanager
def watch(uuid: str | None, on_load: Callable[[dict[str, str]], None], on: bool = True) -> Iterator[dict[str, str]]:
    """Yields a dict that is filled at the end: process -> what it did meanwhile. `tell` gets each finding at once."""
    load: dict[str, str] = {}
    if not on:
        yield load
        return
    before = take_snapshot(uuid)
    on_load(before.at_work)
    yield load
    load |= load_between(before, take_snapshot(uuid))
    on_load(load)


def take_snapshot(uuid: str | None) -> Snapshot:
    """The processes now. `uuid`: of the GPU that is measured, or None."""
    our_processes, ours_s = {psutil.Process(), *descendants()}, 0.0
    others: dict[psutil.Process, float] = {}
    for process in psutil.process_iter(["cpu_times", "cmdline", "ppid"]):
        times = process.info["cpu_times"]  # None if this user may not see it
        if times and process in our_processes:
            ours_s += sum(getattr(times, field, 0.0) for field in SELF_TIMES)
        elif times:
            others[process] = times.user + times.system
    gpu = _gpu_processes(uuid, {process.pid for process in our_processes}) if uuid else {}
    return Snapshot(time.monotonic(), _busy_s(), ours_s, others, gpu | _other_runs(others))


def load_between(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Process -> what it did to this machine between two snapshots."""
    elapsed_s = after.at_s - before.at_s
    cores = {process: (cpu_s - before.others.get(process, 0.0)) / elapsed_s for process, cpu_s in after.others.items()}
    busy = {process: share for process, share in cores.items() if share > BUSY_CORES}
    load = {_process_name(process.pid): f"kept {share:.1f} cores busy" for process, share in busy.items()}
    rest_cores = (after.busy_s - before.busy_s - after.ours_s + before.ours_s) / elapsed_s - sum(busy.values())
    if rest_cores > max(BUSY_CORES, BUSY_SHARE * (os.cpu_count() or 1)):  # of ended, invisible, or many small processes
        load["other processes"] = f"kept {rest_cores:.1f} cores busy"
    return load | before.at_work | after.at_work


def _busy_s() -> float:
    """CPU seconds of all cores; 0 where the time of ended children is unknown."""
    times = psutil.cpu_times()
    fields = ("user", "nice", "system", "irq", "softirq") if sys.platform == "linux" else ()
    return float(sum(getattr(times, field) for field in fields))


def _other_runs(others: Collection[psutil.Process]) -> dict[str, str]:
    """Other runs that are measuring a pair now: processes below the forkserver of a program or notebook."""
    commands = {process: " ".join(process.info["cmdline"] or ()) for process in others}
    servers = {process.pid for process, command in commands.items() if all(words in command for words in SERVER)}
    at_work = {process.info["ppid"] for process in others} & servers
    runs = {process.info["ppid"] for process in others if process.pid in at_work} - servers
    return {_process_name(pid): "is also measuring pairs of the course" for pid in runs}


def _gpu_processes(uuid: str, our_pids: set[int]) -> dict[str, str]:
    with suppress(pynvml.NVMLError):  # some virtual GPUs do not report it, and a GPU broken by a pair cannot
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(nvml_handle(uuid))
        return {
            _process_name(process.pid): "also uses this GPU" for process in processes if process.pid not in our_pids
        }
    return {}


def _process_name(pid: int) -> str:
    """A process in words: its name, a Python program's file, its number."""
    try:
        process = psutil.Process(pid)
        name, words = process.name(), process.cmdline()
    except psutil.Error:  # it has ended, or is outside this container
        return f"a process that is not visible here (pid {pid})"
    program = [Path(word).name for word in words[1:2] if word.endswith(".py")]
    return f"{' '.join([name, *program])} (pid {pid})"
