"""Profile the versions of a pair in this process: warm calls under torch.profiler, of which one is kept.

The clock is read without the profiler first: the profiler slows the host.
"""

import json
import statistics
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch.profiler import ProfilerActivity, profile, record_function

from common.engine.inputs import seed_all
from common.isolation.pipe import MAY_COMPILE, Report
from common.isolation.worker import one_line
from common.machine.clock import Call, now, synchronize
from common.machine.device import use_device
from common.pairs.contract import Version
from common.pairs.pair import load
from common.profiling.profile_file import Event, Recording

MARK = "the call"  # the annotation around a profiled call and the wait for its end
CALLS = 5  # under the profiler; the one that is nearest to a call without it is kept
TIMED_CALLS, TIMED_S = 20, 1.0  # without it: so many, or so many seconds
KEPT = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")
ON_GPU = KEPT[4:]
ARGS = ("correlation", "stream", "grid", "block", "registers per thread", "shared memory", "bytes")
ROWS = 8  # of the table of operations


def record_versions(
    versions: Iterable[Version], arguments: dict[str, Any], device: str, report: Report
) -> dict[str, Recording]:
    """Each version's recording, by label. In a child process: what one leaves in it may slow the next one's host."""
    use_device(device)
    recordings = {}
    for version in versions:
        report(version.label, MAY_COMPILE)
        try:
            recordings[version.label] = _record(version, arguments, device)
        except Exception as error:  # noqa: BLE001 (a version may raise anything; the other ones are profiled)
            recordings[version.label] = Recording(one_line(error))
    return recordings


def prepared_call(version: Version, arguments: dict[str, Any], device: str) -> Call:
    """A warm call of a version on inputs that are drawn from a seed."""
    module = load(version.path)
    seed_all(0, device)
    inputs = module.inputs(**arguments, device=device)
    state = module.setup(**inputs) if hasattr(module, "setup") else {}
    call = partial(module.run, **inputs, **state)
    call()
    synchronize(device)
    return call


def _record(version: Version, arguments: dict[str, Any], device: str) -> Recording:
    call, on_gpu = prepared_call(version, arguments, device), device != "cpu"
    call_s = _seconds_of(call, device)
    with profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu) as profiler:
        for _ in range(CALLS):
            with record_function(MARK):
                call()
                synchronize(device)
    with TemporaryDirectory() as folder:
        profiler.export_chrome_trace(str(path := Path(folder) / "trace.json"))
        trace = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
        events, profiled_s = trim(trace, call_s)
    sort_by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    table = profiler.key_averages().table(sort_by=sort_by, row_limit=ROWS, max_name_column_width=50)
    return Recording("", tuple(events), call_s, profiled_s, table)


def _seconds_of(call: Call, device: str) -> float:
    """Median seconds from an idle device until a call's work is done: what the profiled call shows, on the wall."""
    samples: list[float] = []
    while not samples or (len(samples) < TIMED_CALLS and sum(samples) < TIMED_S):
        begin = now()
        call()
        synchronize(device)
        samples.append(now() - begin)
    return statistics.median(samples)


def trim(trace: list[dict[str, Any]], call_s: float) -> tuple[list[Event], float]:
    """Of a profiler's trace the events of the marked call whose duration is nearest to `call_s`; the duration."""
    marks = [event for event in trace if event.get("name") == MARK and event.get("cat") == "user_annotation"]
    mark = min(marks, key=lambda event: abs(1e-6 * event["dur"] - call_s))
    begin, end = mark["ts"], mark["ts"] + mark["dur"]
    timed = [event for event in trace if event.get("ph") == "X" and event.get("cat") in KEPT and event is not mark]
    inside = [event for event in timed if event["ts"] < end and event["ts"] + event["dur"] > begin]
    threads = {mark["tid"]: 1}  # the caller's thread is the first; a backward pass has another
    spans, open_ops = [], list[tuple[float, int]]()  # (end, thread)
    for event in sorted(inside, key=lambda event: (event["ts"], -event["dur"])):
        args = {name: event["args"][name] for name in ARGS if name in event.get("args", {})}
        lane = _lane(event, threads)
        if event["cat"] == "cpu_op":
            open_ops = [(until, thread) for until, thread in open_ops if until > event["ts"]]
            depth = sum(thread == lane[1] for _, thread in open_ops)
            args |= {"depth": depth} if depth else {}
            open_ops.append((event["ts"] + event["dur"], lane[1]))
        first, last = max(event["ts"], begin), min(event["ts"] + event["dur"], end)
        times = {"ts": round(first - begin, 3), "dur": round(last - first, 3)}
        spans.append(Event(event["name"], "X", event["cat"], pid=lane[0], tid=lane[1], args=args, **times))
    return [*_names(spans), *spans, *_arrows(spans)], 1e-6 * (end - begin)


def _lane(event: dict[str, Any], threads: dict[int, int]) -> tuple[int, int]:
    """(0, a thread's number) or (1 + a GPU's number, its stream). `threads` gets those that are new."""
    if event["cat"] in ON_GPU:
        return 1 + event["args"].get("device", 0), event["args"].get("stream", 0)
    return 0, threads.setdefault(event["tid"], len(threads) + 1)


def _names(spans: list[Event]) -> list[Event]:
    """What a viewer calls the processes and threads."""
    lanes = sorted({(span.pid, span.tid) for span in spans} | {(0, 1)})
    processes = [Event("process_name", "M", pid=pid, args={"name": f"GPU {pid - 1}" if pid else "CPU"})
                 for pid in sorted({pid for pid, _ in lanes})]  # fmt: skip
    return processes + [
        Event("thread_name", "M", pid=pid, tid=tid, args={"name": f"{'stream' if pid else 'thread'} {tid}"})
        for pid, tid in lanes
    ]


def _arrows(spans: list[Event]) -> list[Event]:
    """From each launch to what it started."""
    launches = {span.args.get("correlation"): span for span in spans if span.cat in ("cuda_runtime", "cuda_driver")}
    arrows = []
    for span in spans:
        launch = launches.get(span.args.get("correlation")) if span.pid else None
        if launch:
            number = span.args["correlation"]
            arrows.append(Event("launch", "s", "ac2g", launch.pid, launch.tid, launch.ts, id=number))
            arrows.append(Event("launch", "f", "ac2g", span.pid, span.tid, span.ts, id=number, bp="e"))
    return arrows
