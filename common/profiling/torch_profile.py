"""Run a script under torch.profiler: a table of its costliest operations, and a Chrome trace (for ui.perfetto.dev).

python common/profiling/torch_profile.py TRACE.json.gz SCRIPT [ARGUMENTS ...]
"""

import runpy
import sys
from pathlib import Path

import torch
from torch.profiler import profile

ROWS = 20


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit("usage: torch_profile.py TRACE.json.gz SCRIPT [ARGUMENTS ...]")
    trace, script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    status: object = 0
    with profile() as profiler:
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            status = end.code
    sort_by = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    print(profiler.key_averages().table(sort_by=sort_by, row_limit=ROWS))
    Path(trace).parent.mkdir(parents=True, exist_ok=True)
    profiler.export_chrome_trace(trace)
    print(f"trace: {trace}")
    sys.exit(status)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
