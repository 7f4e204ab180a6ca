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

from common.pairs.pair import ROOT, Pair, Version, discover, short
from common.pairs.user_error import UserError
from common.profiling.recorder import prepared_call

DEADLINE_S = 40
OPTIONS = (
    "--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
    "--print-fp",
)  # fmt: skip
MOST_LAUNCHES = 100  # of a call: each is repeated about ten times, 0.2 s on an H200, and all must end in DEADLINE_S
CHILD = "import sys; from common.profiling.counters import launch; launch(*sys.argv[1:])"
STALLS = {  # name here -> why a warp waits
    "memory": "long_scoreboard", "shared_memory": "short_scoreboard", "memory_queue": "lg_throttle",
    "shared_memory_queue": "mio_throttle", "barrier": "barrier", "arithmetic": "math_pipe_throttle",
    "latency": "wait", "other_warps": "not_selected",
}  # fmt: skip
METRICS = {  # name here -> counter
    "time_ns": "gpu__time_duration.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l1_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm_percent": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "tensor_percent": "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "local_loads": "smsp__inst_executed_op_local_ld.sum",
    **{f"stall_{name}": f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
       for name, reason in STALLS.items()},
}  # fmt: skip
Row = dict[str, Any]  # `kernel`, its `launches`, and of the longest one what this GPU has of METRICS


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
        reason = "; ".join(errors) or (lines or ["it printed nothing"])[-1]
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


def read_counters(pair: Pair, version: Version, arguments: dict[str, Any]) -> tuple[list[Row], str]:
    """(A row for each kernel of a call, which counters this ncu or GPU lacks.) Raises CannotCount."""
    arguments_of_launch = str(version.path.parent), pair.name, short(version.label), json.dumps(arguments)
    child = [sys.executable, "-c", CHILD, *arguments_of_launch]
    known = dict(METRICS)
    while True:
        words = [*OPTIONS, "--launch-count", str(MOST_LAUNCHES), "--metrics", ",".join(known.values())]
        try:
            rows = rows_of(ncu(*words, *child))
        except CannotCount as refusal:  # ncu refuses all for one that it does not know, and names it without its suffix
            refused = [name for name, counter in known.items() if counter.split(".")[0] in str(refusal)]
            if not refused:
                raise
            known = {name: counter for name, counter in known.items() if name not in refused}
        else:
            missing = [name for name in METRICS if not any(name in row for row in rows)]
            return rows, f"counters that this GPU or ncu lacks: {', '.join(missing)}" * bool(missing)


def rows_of(text: str) -> list[Row]:
    """A row for each kernel of ncu's CSV. Raises CannotCount."""
    rows: dict[str, Row] = {}
    for kernel, values in launches_in(text, METRICS.values()):
        row = {"kernel": kernel} | {name: values[counter] for name, counter in METRICS.items() if counter in values}
        longest = max(rows.get(kernel, row), row, key=lambda one: one.get("time_ns", 0))
        rows[kernel] = longest | {"launches": rows.get(kernel, {"launches": 0})["launches"] + 1}
    if not rows:
        raise CannotCount("no counters: ncu saw no kernel")
    return list(rows.values())


def launch(folder: str, name: str, version: str, arguments: str) -> None:
    """Under ncu: one warm call, and one that is profiled."""
    import torch

    from common.machine.device import default_device, use_device

    (pair,) = discover(Path(folder), name)
    use_device(device := default_device())
    call = prepared_call(pair.by_name[version], json.loads(arguments), device)
    torch.cuda.cudart().cudaProfilerStart()
    call()
    torch.cuda.cudart().cudaProfilerStop()
