"""A GPU's own counters: kernels of the course under Nsight Compute, beside the exact counts of the same launches.

    python -m tools.counter_check [--only PATTERN] [--record]

This needs an NVIDIA GPU, `ncu` on the PATH and the permission to read performance counters
(https://developer.nvidia.com/ERR_NVGPUCTRPERM). Nothing else in the course needs them. Requests to L1 are compared with
the counts; traffic of L2 and memory with the model of the L2.
"""

import multiprocessing
import os
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from common.isolation.worker import one_line
from common.machine.device import describe, has_gpu, versions
from common.pairs.pair import ROOT
from common.pairs.wide_tables import print_table
from common.program import Parser, finish, status_of
from common.record.files import check_writable
from common.show.console import make_console, print_wrapped
from common.xray.occupancy import Machine
from tools.counted_launches import ChosenVersion, call_of, choose_versions, count_version, machine_of
from tools.counter_page import HEADINGS, MEMORY_HEADINGS, errors, memory_rows, rows
from tools.counter_truth import METRICS, OCCUPANCY, SCHEMA, ComparedKernel, Truth, keep
from tools.ncu import CannotCount, Counters, Key, ncu, profile_versions

Counts = dict[str, dict[str, int]] | str  # of a version, by kernel; or the reason why there are none


def _use_one_thread() -> None:
    """One thread per process: there are as many processes as cores."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)


def compile_error(version: ChosenVersion) -> str:
    """Run a version once to compile it. Returns the reason of a failure, or an empty text."""
    import torch

    try:
        call_of(*version.load_with_inputs("cuda"))()
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 (any need for something missing)
        return one_line(error)
    return ""


def count_or_reason(machine: Machine, version: ChosenVersion, resident: dict[str, int]) -> Counts:
    """The counts of a version, or the reason why there are none."""
    try:
        return count_version(machine, version, resident)
    except Exception as error:  # noqa: BLE001 (any limit of Triton's interpreter)
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
        reasons = list(zip(selected, pool.map(compile_error, selected), strict=True))
        plan = [version for version, reason in reasons if not reason]
        counters = profile_versions(plan, metrics)
        resident = [resident_programs(counters, number) for number in range(len(plan))]
        counts = list(pool.map(partial(count_or_reason, machine_of(info)), plan, resident))
    kernels, left_out = compare_counts(plan, counters, counts)
    version = ncu("--version").strip().splitlines()[-1].split()[1]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    environment = {"device": info, "versions": {**versions(), "ncu": version}, "date": date}
    left_out |= {version.label: reason for version, reason in reasons if reason}
    return Truth(SCHEMA, environment, kernels, sorted(set(METRICS) - set(metrics)), left_out)


def parse(argv: list[str] | None) -> Namespace:
    """Parse the arguments. Raises UsageError."""
    parser = Parser("python -m tools.counter_check", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="pairs whose names match")
    parser.add_argument("--record", action="store_true", help="keep the result as recorded/<device>/traffic.json")
    return parser.parse_args(argv)


def run(argv: list[str] | None, folder: Path) -> int:
    """Measure, print, keep. Returns the exit status. Raises UserError."""
    args, console = parse(argv), make_console()
    if args.record:
        check_writable(folder / "any", makes_folder=True)
    truth = measure(args.only)
    message = f"recorded in {keep(truth, folder)}" if args.record else ""
    print_table("sectors", HEADINGS, rows(truth), console, keys=2)
    print_table("L2 and memory", MEMORY_HEADINGS, memory_rows(truth), console, keys=2)
    left_out = [f"left out: {what}: {reason}" for what, reason in truth.left_out.items()]
    for text in filter(None, [*errors(truth), *left_out, message]):
        print_wrapped(text, console)
    return 0


def main(argv: list[str] | None = None, folder: Path = ROOT / "recorded") -> int:
    return status_of("counters", lambda: run(argv, folder))


if __name__ == "__main__":
    finish(main)
