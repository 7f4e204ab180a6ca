"""What pairs' versions run: operations and a trace (benchmark.py --profile), machine code (--xray), races (--race)."""

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from common.isolation import interrupt, worker
from common.machine.device import default_device, use_device
from common.machine.survey import survey_apart
from common.pairs.pair import Pair, Version, load, short, sizes_of, skip_reason
from common.pairs.user_error import printable, width_of, wrap_text
from common.record.files import make_folder
from common.record.outcome import Verdict
from common.show import words
from common.show.console import make_console, measurement_progress
from common.xray.picture import xray
from common.xray.xray_tables import print_pictures

PROFILED_CALLS = 3


def profile_pairs(pairs: list[Pair], out: Path, device: str | None = None) -> list[Path]:
    """Profile each version in its own process; name a version that cannot run here. Returns the traces written."""
    device = device or default_device()
    info, _ = survey_apart(device, with_limits=False)
    make_folder(out)
    traces = []
    for pair, version in [(pair, version) for pair in pairs for version in pair.versions]:  # noqa: B020
        no_gpu = "needs an NVIDIA GPU" if info["kind"] == "cpu" and "triton" in version.imports else ""
        several = "runs in several processes: start it with torchrun under a profiler" if pair.ranks > 1 else ""
        if reason := skip_reason(version, info, info["gpus"]) or no_gpu or several:
            print(f"{version.path.stem}: skipped: {reason}")
            continue
        trace = out / f"{version.path.stem}.json.gz"
        size = "cpu" if info["kind"] == "cpu" and "cpu" in pair.sizes else "default"
        try:
            table = worker.call(_profile, version, pair.sizes[size], device, trace)
            print(f"{version.path.stem} ({size}, {PROFILED_CALLS} calls)\n{table}")
            traces.append(trace)
        except worker.ChildFailed as death:
            print(f"{version.path.stem}: {death}")
    print(f"{len(traces)} traces in {out} (open them in chrome://tracing or Perfetto)")
    return traces


def _profile(version: Version, size: dict, device: str, trace: Path, say: Callable[[str, float], None]) -> str:
    """In a child process: warm up, profile, write the trace. Returns the table."""
    import torch  # a slow import, as the others here
    from torch.profiler import ProfilerActivity, profile

    from common.engine.inputs import seed_all
    from common.machine.clock import synchronize

    module = load(version.path)
    use_device(device)
    seed_all(0, device)
    inputs = module.inputs(**size, device=device)
    state = module.setup(**inputs) if hasattr(module, "setup") else {}
    module.run(**inputs, **state)
    synchronize(device)
    on_gpu = torch.device(device).type == "cuda"
    with profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu) as profiler:
        for _ in range(PROFILED_CALLS):
            module.run(**inputs, **state)
        synchronize(device)
    profiler.export_chrome_trace(str(trace))
    sort_by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    return profiler.key_averages().table(sort_by=sort_by, row_limit=8, max_name_column_width=50)


def xray_pairs(args: Namespace, pairs: list[Pair]) -> int:
    """Show the kernels' machine code. Exit status 1 if a version fails by its own fault."""
    failed = False
    with interrupt.hold_signals():
        for pair in pairs:
            for size in sizes_of(pair, args.size, on_cpu=False):
                pictures = xray(pair, args.arch, size)
                title = pair.name if size == "default" else f"{pair.name} {size}"
                print_pictures(title, pictures, make_console(), args.code)
                failed |= any(picture.failed for picture in pictures)
    return 1 if failed else 0


def race_pairs(pairs: list[Pair]) -> int:
    """Look for races in Triton's interpreter, at every check size. Exit status 1 if a version has one, or is wrong."""
    from common.engine import runner

    kernels = [pair for pair in pairs if any("triton" in version.imports for version in pair.versions)]
    if others := [pair.name for pair in pairs if pair not in kernels]:
        print(f"no Triton kernel: {', '.join(others)}")
    with interrupt.hold_signals(), measurement_progress(len(kernels)) as (on_progress, _):
        record = runner.run_pairs(kernels, device="cpu", check_only=True, stressed=False, on_progress=on_progress)
    for result in record.pairs:
        print(result.name)
        for row in result.rows:
            is_right = row.verdict == Verdict.VERIFIED
            text = "no race, whatever the order of programs" if is_right else words.text(row.reason)
            print(wrap_text(printable(f"  {short(row.variant)}: {text}"), width_of(sys.stdout), "    "))
    if record.environment["interrupted"]:
        return 130
    return 1 if runner.has_failed(record) else 0
