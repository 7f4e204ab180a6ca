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
from common.show.console import make_console, say
from common.xray.occupancy import Machine
from tools.counted_launches import Chosen, call_of, chosen, counted, machine_of
from tools.counter_page import HEADINGS, MEMORY_HEADINGS, errors, memory_rows, rows
from tools.counter_truth import METRICS, OCCUPANCY, SCHEMA, Compared, Truth, keep
from tools.ncu import CannotCount, Counters, Key, ncu, profiled

Counts = dict[str, dict[str, int]] | str  # of a version, by kernel; or the reason why there are none


def _one_thread() -> None:
    """One thread per process: there are as many processes as cores."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)


def compiled(each: Chosen) -> str:
    """Run a version once to compile it. Returns the reason of a failure, or an empty text."""
    import torch

    try:
        call_of(*each.drawn("cuda"))()
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 (any need for something missing)
        return one_line(error)
    return ""


def tried(machine: Machine, each: Chosen, resident: dict[str, int]) -> Counts:
    """The counts of a version, or the reason why there are none."""
    try:
        return counted(machine, each, resident)
    except Exception as error:  # noqa: BLE001 (any limit of Triton's interpreter)
        return one_line(error)


def resident(counters: dict[Key, Counters], number: int) -> dict[str, int]:
    """Kernel -> programs that an SM holds, for one version."""
    return {name: int(min(found[by] for by in OCCUPANCY)) for (of, name), found in counters.items() if of == number}


def compared(
    plan: list[Chosen], counters: dict[Key, Counters], counts: list[Counts]
) -> tuple[list[Compared], dict[str, str]]:
    """(The kernels of all counted versions, the other versions with reasons.)"""
    kernels, left = [], {plan[n].label: count for n, count in enumerate(counts) if isinstance(count, str)}
    for (number, name), found in counters.items():
        each, count = plan[number], counts[number]
        if isinstance(count, dict) and name in count:
            kernels.append(Compared(each.pair, each.version, each.size, name, count[name], found))
        elif isinstance(count, dict):
            left[each.label] = f"only the GPU launched {name}"
    return sorted(kernels, key=lambda kernel: kernel.pair), left


def measure(only: str) -> Truth:
    """Profile and count all chosen versions. Raises CannotCount."""
    if not has_gpu():
        raise CannotCount("this machine has no NVIDIA GPU, which is needed")
    known = {text.split()[0] for text in ncu("--query-metrics").splitlines() if text.strip()}
    metrics = [name for name in METRICS if name.startswith("launch__") or name.partition(".")[0] in known]
    info, every = describe("cuda:0"), chosen(only)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"), _one_thread) as pool:
        reasons = list(zip(every, pool.map(compiled, every), strict=True))
        plan = [each for each, why in reasons if not why]
        counters = profiled(plan, metrics)
        at_once = [resident(counters, number) for number in range(len(plan))]
        counts = list(pool.map(partial(tried, machine_of(info)), plan, at_once))
    kernels, left = compared(plan, counters, counts)
    version = ncu("--version").strip().splitlines()[-1].split()[1]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    environment = {"device": info, "versions": {**versions(), "ncu": version}, "date": date}
    left |= {each.label: why for each, why in reasons if why}
    return Truth(SCHEMA, environment, kernels, sorted(set(METRICS) - set(metrics)), left)


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
    written = f"recorded in {keep(truth, folder)}" if args.record else ""
    print_table("sectors", HEADINGS, rows(truth), console, keys=2)
    print_table("L2 and memory", MEMORY_HEADINGS, memory_rows(truth), console, keys=2)
    left = [f"left out: {what}: {why}" for what, why in truth.left_out.items()]
    for text in filter(None, [*errors(truth), *left, written]):
        say(text, console)
    return 0


def main(argv: list[str] | None = None, folder: Path = ROOT / "recorded") -> int:
    return status_of("counters", lambda: run(argv, folder))


if __name__ == "__main__":
    finish(main)
