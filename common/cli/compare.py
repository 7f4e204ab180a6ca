"""What a chapter's compare.py needs: all its pairs measured, or profiled; and what two records say of each other."""

import sys
from collections.abc import Callable
from pathlib import Path

from common.engine.runner import has_failed, run_pairs, survey_apart
from common.isolation import process
from common.machine.device import default_device, use_device
from common.pairs.contract import OneLine
from common.pairs.pair import ROOT, Pair, Version, discover, why_not
from common.record.result import Record, RecordError, Row, load_record
from common.record.stats import MARGIN
from common.show.console import make_console, print_record
from common.show.tables import ratio

PROFILED_CALLS = 3


def compare_chapter(chapter: str) -> int:
    """Measure all pairs of a chapter and print the table; returns the exit status."""
    try:
        pairs = discover(ROOT / chapter)
        record = run_pairs(pairs)
    except OneLine as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before anything was measured; later, run_pairs returns what there is
        print("interrupted", file=sys.stderr)
        return 130
    print_record(record, make_console(), pairs)
    return 130 if record.environment["interrupted"] else 1 if has_failed(record) else 0


def profile_chapter(chapter: str, only: str = "*", out: Path | None = None, device: str | None = None) -> list[Path]:
    """Profile a chapter's pairs: each version's costliest operations on stdout, Chrome traces in results/<chapter>/."""
    return profile_pairs(discover(ROOT / chapter, only), out or ROOT / "results" / chapter, device)


def profile_pairs(pairs: list[Pair], out: Path, device: str | None = None) -> list[Path]:
    """One process a version; a version that cannot run here is named with the reason. Returns the traces written."""
    device = device or default_device()
    info, _ = survey_apart(device, with_limits=False)
    out.mkdir(parents=True, exist_ok=True)
    traces = []
    for pair, version in [(pair, version) for pair in pairs for version in pair.versions]:  # noqa: B020
        reason = why_not(version, info, info["gpus"]) or (
            "needs an NVIDIA GPU" if info["kind"] == "cpu" and "triton" in version.imports else ""
        )
        if reason:
            print(f"{version.path.stem}: skipped: {reason}")
            continue
        trace = out / f"{version.path.stem}.json.gz"
        size = "cpu" if info["kind"] == "cpu" and "cpu" in pair.sizes else "default"
        try:
            table = process.call(_profile, version, pair.sizes[size], device, trace)
            print(f"{version.path.stem} ({size}, {PROFILED_CALLS} calls)\n{table}")
            traces.append(trace)
        except process.Death as death:
            print(f"{version.path.stem}: {death}")
    print(f"{len(traces)} traces in {out} (open them in chrome://tracing or Perfetto)")
    return traces


def _profile(version: Version, size: dict, device: str, trace: Path, say: Callable[[str, float], None]) -> str:
    """In a child: warm up, profile, write the trace; returns the table."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from common.engine.inputs import seed_all
    from common.machine.clock import synchronize
    from common.pairs.pair import load

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
    return profiler.key_averages().table(
        sort_by="self_device_time_total" if on_gpu else "self_cpu_time_total", row_limit=8, max_name_column_width=50
    )


def compare_files(old: Path, new: Path) -> int:
    """Print what two records say of the same rows; exit status 3 if something regressed. Raises RecordError."""
    records = load_record(old), load_record(new)
    lines, count = regressions(*records)
    if not lines:
        raise RecordError(f"{new}: has no row in common with {old}" + interrupted(records[1]))
    print("\n".join(lines))
    names = [record.environment["device"]["name"] for record in records]
    if names[0] != names[1]:
        print(f"different devices, {names[0]} and {names[1]}: no regression can be told")
        return 0
    compared = sum(not line.startswith("missing") for line in lines)
    print(f"{count} of {compared} regressed" + interrupted(records[1]))
    return 3 if count else 0


def interrupted(record: Record) -> str:
    return " (that run was interrupted)" if record.environment.get("interrupted") else ""


def regressions(old: Record, new: Record) -> tuple[list[str], int]:
    """(a line for every row that both records hold, how many of them regressed)."""
    before, after = _rows(old), _rows(new)
    lines, count = [], 0
    for key in [key for key in before if key in after]:
        worse = _is_worse(before[key], after[key])
        count += worse
        shown = " -> ".join(f"{row.verdict} {ratio(row)}".strip() for row in (before[key], after[key]))
        lines.append(f"{'REGRESSED' if worse else 'ok':9}  {' '.join(key)}: {shown}")
    lines += [f"{'missing':9}  {' '.join(key)}" for key in before if key not in after] if lines else []
    return lines, count


def _rows(record: Record) -> dict[tuple[str, ...], Row]:
    return {
        (pair.chapter, pair.name, pair.size, row.variant, "vs", row.versus): row
        for pair in record.pairs
        for row in pair.rows
    }


def _is_worse(before: Row, after: Row) -> bool:
    """A row that can no longer be believed, or whose interval now lies below the old one by more than the margin."""
    if after.ratio is None:
        return before.ratio is not None or (after.verdict in ("invalid", "died") and before.verdict == "checked")
    return bool(before.interval and after.interval and after.interval[1] * (1 + MARGIN) < before.interval[0])
