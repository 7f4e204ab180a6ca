"""A GPU's counters of each kernel of a call, read by Nsight Compute: a table beside the timeline.

`ncu` starts a process that makes two calls, and profiles the second. Each launch is repeated until all counters are
read; the clocks are not changed.
"""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from common.pairs.pair import ROOT, Pair, Version, discover
from common.pairs.user_error import UserError

DEADLINE_S = 120
OPTIONS = (
    "--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
    "--print-fp",
)  # fmt: skip
MOST_LAUNCHES = 40  # of a call: each is repeated about ten times
CHILD = "import sys; from common.profiling.counters import launch; launch(*sys.argv[1:])"
METRICS = {  # name here -> counter
    "time_ns": "gpu__time_duration.sum",
    "sm_clock_hz": "sm__cycles_elapsed.avg.per_second",
    "programs": "launch__grid_size",
    "threads": "launch__block_size",
    "registers": "launch__registers_per_thread",
    "shared_bytes": "launch__shared_mem_per_block",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l1_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "tensor_percent": "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_percent": "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "local_loads": "smsp__inst_executed_op_local_ld.sum",
    "stall_memory": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "stall_barrier": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "stall_math": "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
}
Row = dict[str, Any]  # `kernel`, and what this GPU has of METRICS


class CannotCount(UserError):
    """No GPU, no Nsight Compute, no permission, or an unknown output; str() says which."""


def ncu(*arguments: str, deadline_s: int = DEADLINE_S) -> str:
    """The output of Nsight Compute. Raises CannotCount."""
    if not (path := shutil.which("ncu")):
        raise CannotCount("no counters: Nsight Compute is not installed (ncu is not on the PATH)")
    words = [path, *arguments]
    try:
        process = subprocess.run(words, capture_output=True, text=True, timeout=deadline_s, cwd=ROOT, check=False)
    except subprocess.TimeoutExpired:
        raise CannotCount(f"no counters: ncu took more than {deadline_s} s") from None
    lines = (process.stdout + process.stderr).strip().splitlines()
    errors = [line.removeprefix("==ERROR== ") for line in lines if line.startswith("==ERROR==")]
    if process.returncode or errors:
        reason = (errors or lines[-1:] or ["it printed nothing"])[0]
        raise CannotCount(f"no counters: ncu ended with status {process.returncode}: {reason}")
    return process.stdout


def launches_in(text: str, counters: Iterable[str]) -> list[tuple[str, dict[str, float]]]:
    """(Kernel, what the table has of these counters) in the order of launches, from ncu's CSV. Raises CannotCount."""
    table = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    launches, wanted = [], list(counters)
    try:
        for line in table:
            if line["ID"]:  # the row after the head holds only units
                texts = {name: line[name] for name in wanted if line.get(name) not in (None, "", "n/a")}
                launches.append((line["Kernel Name"], {name: float(texts[name].replace(",", "")) for name in texts}))
    except (KeyError, ValueError) as error:
        raise CannotCount(f"no counters: ncu's table is not understood ({type(error).__name__}: {error})") from None
    return launches


def read_counters(pair: Pair, version: Version, arguments: dict[str, Any]) -> list[Row]:
    """A row for each launch of a call. Raises CannotCount."""
    words = [*OPTIONS, "--launch-count", str(MOST_LAUNCHES), "--metrics", ",".join(METRICS.values())]
    words += [sys.executable, "-c", CHILD, str(version.path.parent), pair.name, version.label, json.dumps(arguments)]
    return rows_of(ncu(*words))


def rows_of(text: str) -> list[Row]:
    """The rows of ncu's CSV, in the order of launches. Raises CannotCount."""
    names = {counter: name for name, counter in METRICS.items()}
    rows = [
        {"kernel": kernel} | {names[counter]: value for counter, value in values.items()}
        for kernel, values in launches_in(text, METRICS.values())
    ]
    if not rows:
        raise CannotCount("no counters: ncu saw no kernel")
    return rows


def launch(folder: str, name: str, label: str, arguments: str) -> None:
    """Under ncu: one warm call, and one that is profiled."""
    import torch

    from common.machine.clock import synchronize
    from common.machine.device import default_device, use_device
    from common.profiling.recorder import prepared_call

    (pair,) = discover(Path(folder), name)
    use_device(device := default_device())
    call = prepared_call(pair.version(label), json.loads(arguments), device)
    torch.cuda.cudart().cudaProfilerStart()
    call()
    synchronize(device)
    torch.cuda.cudart().cudaProfilerStop()
