"""Compare exact counts with the counters of Nsight Compute.

This needs an NVIDIA GPU, `ncu` on the PATH and the permission to read performance counters
(https://developer.nvidia.com/ERR_NVGPUCTRPERM). Nothing else in the course needs them. Requests to L1 are compared with
the counts; traffic of L2 and memory with the model of the L2.

A child process under `ncu` calls each version twice; the second call is profiled. Each of its launches is repeated,
with empty caches, until all counters are read. The clocks are not changed.
"""

import json
import multiprocessing
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from common.isolation.worker import one_line
from common.machine.device import describe, has_gpu, versions
from common.pairs.wide_tables import print_table
from common.profiling.counters import OPTIONS, CannotCount, launches_in, ncu
from common.record import files
from common.show.console import make_console, print_wrapped
from tools.counted_launches import ChosenVersion, call_of, choose_versions, count_version, machine_of
from tools.counter_page import HEADINGS, MEMORY_HEADINGS, errors, memory_rows, rows
from tools.counter_truth import FIXED, METRICS, OCCUPANCY, SCHEMA, ComparedKernel, Truth, keep

DEADLINE_S = 600
CHILD = "import sys; from tools.counter_check import launch; launch(*sys.argv[1:])"
Key = tuple[int, str]  # (index of the chosen version, name of the kernel)
Counters = dict[str, float]
Counts = dict[str, dict[str, int]] | str  # of a version, by kernel; or the reason why there are none


def sum_by_kernel(launches: list[Key], profile: Iterable[tuple[str, Counters]]) -> dict[Key, Counters]:
    """The counters of each version's kernels, summed over its launches, without torch's own kernels.

    Raises CannotCount unless the profiled launches are the made ones.
    """
    names = [name for _, name in launches]
    own_launches = [entry for entry in profile if entry[0] in names]
    if [name for name, _ in own_launches] != names:
        raise CannotCount(f"Nsight Compute profiled {len(own_launches)} launches, not the {len(names)} that were made")
    totals: dict[Key, Counters] = {}
    for key, (_, counters) in zip(launches, own_launches, strict=True):
        sums = totals.setdefault(key, {})
        for name, value in counters.items():
            sums[name] = value if name in FIXED else sums.get(name, 0.0) + value
    return totals


def launch(plan: str, out: str) -> None:
    """Run under Nsight Compute: call all planned versions in turn. Writes the launched kernels."""
    import torch

    launches: list[Key] = []
    for number, version in enumerate(ChosenVersion(**version) for version in json.loads(Path(plan).read_text())):
        call = call_of(*version.load_with_inputs("cuda"))
        call()
        torch.cuda.synchronize()
        with _note_launches(number, launches):
            torch.cuda.profiler.start()
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
    Path(out).write_text(json.dumps(launches))


@contextmanager
def _note_launches(number: int, launches: list[Key]) -> Iterator[None]:
    from unittest.mock import patch

    from triton.runtime.jit import JITFunction  # optional: not in macOS

    original_run = JITFunction.run

    def run(self: Any, *args: Any, **options: Any) -> Any:
        launches.append((number, self.__name__))
        return original_run(self, *args, **options)

    with patch.object(JITFunction, "run", run):
        yield


def profile_versions(plan: list[ChosenVersion], metrics: list[str]) -> dict[Key, Counters]:
    """The counters of each kernel of each version. Raises CannotCount."""
    with tempfile.TemporaryDirectory() as folder:
        plan_file, out = Path(folder) / "planned", Path(folder) / "launched"
        plan_file.write_text(json.dumps([asdict(version) for version in plan]))
        words = [*OPTIONS, "--cache-control", "all", "--metrics", ",".join(metrics)]
        printed = ncu(*words, sys.executable, "-c", CHILD, str(plan_file), str(out), deadline_s=DEADLINE_S)
        made = [(number, name) for number, name in json.loads(out.read_text())]
        return sum_by_kernel(made, launches_in(printed, METRICS))


def _use_one_thread() -> None:
    """One thread per process: there are as many processes as cores."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)


def compile_version(version: ChosenVersion) -> None:
    """Run it once on the GPU."""
    import torch

    call_of(*version.load_with_inputs("cuda"))()
    torch.cuda.synchronize()


def or_reason(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, or the reason of its failure: something is missing, or a limit of the interpreter."""
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001
        return one_line(error)


def resident_programs(counters: dict[Key, Counters], number: int) -> dict[str, int]:
    """Kernel -> programs that an SM holds, for one version."""
    kernels = {name: limits for (owner, name), limits in counters.items() if owner == number}
    return {name: int(min(limits[by] for by in OCCUPANCY)) for name, limits in kernels.items()}


def compare_counts(
    plan: list[ChosenVersion], counters: dict[Key, Counters], counts: list[Counts]
) -> tuple[list[ComparedKernel], dict[str, str]]:
    """(The kernels of all counted versions, the other versions with reasons.)"""
    kernels, left_out = [], {plan[n].label: count for n, count in enumerate(counts) if isinstance(count, str)}
    for (number, name), values in counters.items():
        version, count = plan[number], counts[number]
        if isinstance(count, dict) and name in count:
            kernels.append(ComparedKernel(version.pair, version.version, version.size, name, count[name], values))
        elif isinstance(count, dict):
            left_out[version.label] = f"only the GPU launched {name}"
    return sorted(kernels, key=lambda kernel: kernel.pair), left_out


def measure(only: str) -> Truth:
    """Profile and count all chosen versions. Raises CannotCount."""
    if not has_gpu():
        raise CannotCount("this machine has no NVIDIA GPU, which is needed")
    available = {text.split()[0] for text in ncu("--query-metrics").splitlines() if text.strip()}
    metrics = [name for name in METRICS if name.startswith("launch__") or name.partition(".")[0] in available]
    info, selected = describe("cuda:0"), choose_versions(only)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"), _use_one_thread) as pool:
        reasons = list(zip(selected, pool.map(partial(or_reason, compile_version), selected), strict=True))
        plan = [version for version, reason in reasons if not reason]
        counters = profile_versions(plan, metrics)
        resident = [resident_programs(counters, number) for number in range(len(plan))]
        counts = list(pool.map(partial(or_reason, count_version, machine_of(info)), plan, resident))
    kernels, left_out = compare_counts(plan, counters, counts)
    version = ncu("--version").strip().splitlines()[-1].split()[1]
    environment = {"device": info, "versions": {**versions(), "ncu": version}, "date": files.utc_now()}
    left_out |= {version.label: reason for version, reason in reasons if reason}
    return Truth(SCHEMA, environment, kernels, sorted(set(METRICS) - set(metrics)), left_out)


def run(args: Namespace) -> int:
    """Measure, print, keep. Returns the exit status. Raises UserError."""
    console = make_console()
    if args.record:
        files.check_writable(files.RECORDED / "any", makes_folder=True)
    truth = measure(args.only)
    message = f"recorded in {keep(truth)}" if args.record else ""
    print_table("sectors", HEADINGS, rows(truth), console, keys=2)
    print_table("L2 and memory", MEMORY_HEADINGS, memory_rows(truth), console, keys=2)
    left_out = [f"left out: {what}: {reason}" for what, reason in truth.left_out.items()]
    for text in filter(None, [*errors(truth), *left_out, message]):
        print_wrapped(text, console)
    return 0
