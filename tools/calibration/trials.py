"""Measure a pair many times: like any other pair, and with every core busy."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from common.engine.job import Job
from common.engine.measure import measure_pair
from common.engine.runner import run_pairs
from common.isolation import worker
from common.pairs.pair import Pair, load, short, sizes_of
from common.pairs.user_error import UserError
from common.record.result import Record
from tools.calibration.findings import Run, run_of

BLOCKS = 12  # the pilot's choice on a quiet machine; on a noisy one up to four times as many
PER_PROCESS = 20  # runs: with a process for each, starts would take a quarter of the time
HOG = """
import os, sys, numpy
x = numpy.ones(1 << 22)  # 32 MiB: keeps its core busy, and the caches and the memory that all share
while os.getppid() == int(sys.argv[1]):
    x += 1.0
"""
Say = Callable[[str, int, int], None]  # (stage, amount done, total amount)


class TrialError(UserError):
    """A measurement that could not be made."""


def repetitions(pair: Pair) -> dict[str, int]:
    """The number of repetitions of each version, from its file."""
    return {short(version.label): load(version.path).REPETITIONS for version in pair.versions}


def measure_in_turn(pair: Pair, device: str, times: int, say: Say) -> Record:
    """Measure a pair several times, exactly as benchmark.py does."""
    done: list[str] = []

    def tell(_: Pair, size: str, stage: str, fraction: float) -> None:
        done.extend([size] * (stage == "start"))
        say(pair.name, len(done) - 1, times)

    record = run_pairs([pair] * times, device=device, on_progress=tell)
    if record.environment["interrupted"]:
        raise KeyboardInterrupt
    return record


def job_of(pair: Pair, record: Record, device: str) -> Job:
    """The job that measures a pair on the machine of a record."""
    info, labels = record.environment["device"], [version.label for version in pair.versions]
    (size,) = sizes_of(pair, "default", info["kind"] == "cpu")
    return Job(pair, size, device, info, record.limits, labels, labels, BLOCKS)


def run_repeatedly(job: Job, runs: int, condition: str, say: Say) -> list[Run]:
    """Run the same job with different seeds, several in each process."""
    results: list[Run] = []
    for first in range(0, runs, PER_PROCESS):
        jobs = [replace(job, seed=seed) for seed in range(first, min(first + PER_PROCESS, runs))]
        results += run_in_child(measure_all, jobs, on_progress=lambda run, _: say(condition, int(run), runs))
    return results


def measure_all(jobs: list[Job], say: Callable[[str, float], None]) -> list[Run]:
    """In a child process: measure all jobs. Only the ratios are kept."""
    results = []
    for job in jobs:
        say(str(job.seed), 0.0)
        results.append(run_of(job.seed, measure_pair(job, lambda stage, fraction: None)))
    return results


def run_in_child(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function in its own process (common.isolation.worker.call). Raises Failed."""
    try:
        return worker.call(function, *arguments, **options)
    except worker.ChildFailed as death:
        raise TrialError(str(death)) from None


@contextmanager
def all_cores_busy() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Inside, one process per core computes all the time. They end when this process does, however it ends."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    command = [sys.executable, "-c", HOG, str(os.getpid())]
    hogs = [subprocess.Popen(command, start_new_session=True) for _ in range(cores)]  # ignores Ctrl-C
    try:
        yield hogs
        if ended := [hog.returncode for hog in hogs if hog.poll() is not None]:
            raise TrialError(f"a process that keeps a core busy ended by itself with status {ended[0]}")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
