"""Profile a pair's versions and libraries here and now: warm calls under torch.profiler, of which one is kept.

All run in one child process. The clock is read without the profiler first: the profiler slows the host.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import structs

from common.isolation import forkserver, worker
from common.isolation.pipe import MAY_COMPILE, Report
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.pairs.contract import LIBRARY_KINDS
from common.pairs.pair import Pair, Version, load, sizes_of, skip_reason
from common.pairs.source import source_hash
from common.record.files import utc_now
from common.record.profile_file import About, Event, Profile, fitted
from common.record.store import as_json

MARK = "the call"  # the annotation around a profiled call and the wait for its end
CALLS = 5  # under the profiler; the one that is nearest to a call without it is kept
TIMED_CALLS = 11  # without it
Call = Callable[[], None]
KEPT = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "ac2g")
ARGS = ("correlation", "stream", "grid", "block", "registers per thread", "shared memory", "bytes")
SEVERAL = "runs in several processes: start it with torchrun under a profiler"


def profiles_of(
    pair: Pair, chosen: Sequence[Version], size: str, device: str | None
) -> Iterator[tuple[Version, Profile | str]]:
    """Profile versions of a pair at each size of this name; a text says why one has no profile. Raises DeviceError."""
    device = device or default_device()
    forkserver.prefer("triton" if device.startswith("cuda") else "torch")  # before the first child: one server
    info, _ = survey_apart(device, with_limits=False)
    environment = {"device": dict(info), "versions": versions(), "platform": sys.platform, "date": utc_now()}
    skipped = {version.label: reason for version in chosen if (reason := _skip_reason(pair, version, info))}
    able = [version for version in chosen if version.label not in skipped]
    yield from ((version, f"skipped: {skipped[version.label]}") for version in chosen if version not in able)
    for name in sizes_of(pair, size, info["kind"] == "cpu") if able else ():
        arguments = as_json(pair.sizes[name])
        about = About(pair.chapter, pair.name, "", name, arguments, source_hash(pair), environment, 1.0, 1.0)
        try:
            found = worker.call(record_versions, able, pair.sizes[name], about, device)
        except worker.ChildFailed as death:
            found = dict.fromkeys([version.label for version in able], str(death))
        yield from ((version, found[version.label]) for version in able)


def _skip_reason(pair: Pair, version: Version, info: dict[str, Any]) -> str:
    is_library = version.label.split("_")[0] in LIBRARY_KINDS
    package = version.constants.get("LIBRARY_NEEDS", {}).get(version.label)
    absent = f"needs the package {package}" if package and not find_spec(package) else ""
    is_ours = "triton" in version.imports and not is_library
    no_gpu = "needs an NVIDIA GPU" if info["kind"] == "cpu" and is_ours else ""
    return skip_reason(version, info, info["gpus"]) or no_gpu or absent or SEVERAL * (pair.ranks > 1)


def record_versions(
    chosen: Sequence[Version], arguments: dict[str, Any], about: About, device: str, report: Report
) -> dict[str, Profile | str]:
    """By label, in the child, which has torch. What one leaves in its process may slow the next one's host."""
    from common.machine.device import use_device

    use_device(device)
    found: dict[str, Profile | str] = {}
    for version in chosen:
        report(version.label, MAY_COMPILE)
        try:
            found[version.label] = _profile(prepared_call(version, arguments, device), about, version.label, device)
        except Exception as error:  # noqa: BLE001 (a version may raise anything; the other ones are profiled)
            found[version.label] = worker.one_line(error)
    return found


def prepared_call(version: Version, arguments: dict[str, Any], device: str) -> Call:
    """A warm call of a version, or of a library, on inputs that are drawn from a seed; it ends with its work."""
    from common.engine.inputs import seed_all
    from common.machine.clock import synchronize

    module, is_library = load(version.path), version.label.split("_")[0] in LIBRARY_KINDS
    seed_all(0, device)
    inputs = module.inputs(**arguments, device=device)
    state = module.setup(**inputs) if hasattr(module, "setup") and not is_library else {}
    run = getattr(module, version.label if is_library else "run")

    def call() -> None:
        run(**inputs, **state)
        synchronize(device)

    call()
    return call


def _profile(call: Call, about: About, label: str, device: str) -> Profile:
    from torch.profiler import profile, record_function

    from common.machine.clock import host_seconds

    call_s = host_seconds(call, device, TIMED_CALLS)
    with profile() as profiler:
        for _ in range(CALLS):
            with record_function(MARK):
                call()
    with TemporaryDirectory() as folder:
        profiler.export_chrome_trace(str(path := Path(folder) / "trace.json"))
        trace = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    events, profiled_s = trim(trace, call_s)
    return fitted(Profile(structs.replace(about, version=label, call_s=call_s, profiled_s=profiled_s), events))


def trim(trace: list[dict[str, Any]], call_s: float) -> tuple[list[Event], float]:
    """Of a profiler's trace the events of the marked call whose duration is nearest to `call_s`; the duration."""
    marks = [event for event in trace if event.get("name") == MARK and event.get("cat") == "user_annotation"]
    mark = min(marks, key=lambda event: abs(1e-6 * event["dur"] - call_s))
    begin, end = mark["ts"], mark["ts"] + mark["dur"]
    events = []
    for raw in trace:
        if raw.get("cat") in KEPT and raw.get("name") != MARK:
            first, last = max(raw["ts"], begin), min(raw["ts"] + raw.get("dur", 0), end)
            if first <= last:
                args = {name: raw["args"][name] for name in ARGS if name in raw.get("args", {})}
                times = {"ts": round(first - begin, 3), "dur": round(last - first, 3)}
                events.append(msgspec.convert({**raw, **times, "args": args}, Event))
    lanes = {(event.pid, tid) for event in events for tid in (0, event.tid)}
    named = [raw for raw in trace if raw.get("ph") == "M" and (raw["pid"], raw["tid"]) in lanes]
    names = [Event(raw["name"], "M", pid=raw["pid"], tid=raw["tid"], args=raw["args"]) for raw in named]
    unique = {msgspec.json.encode(name): name for name in names}
    return [*unique.values(), *sorted(events, key=lambda event: (event.ts, -event.dur))], 1e-6 * (end - begin)
