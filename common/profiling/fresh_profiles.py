"""Profile a pair's versions here and now, all in one child process."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from common.isolation import forkserver, worker
from common.isolation.pipe import Report
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.pairs.interpreter import environment_on
from common.pairs.pair import Pair, Version, sizes_of, skip_reason
from common.pairs.source import source_hash
from common.profiling.profile_file import About, Profile, Recording, fitted
from common.record.files import RecordError, utc_now
from common.record.store import as_json

Profiled = tuple[Version, Recording, Profile | None]  # a profile, unless the recording has a problem


def profiles_of(pair: Pair, chosen: Sequence[Version], size: str, device: str | None) -> Iterator[Profiled]:
    """Profile versions of a pair, all in one child, at each size of this name. Raises DeviceError."""
    device = device or default_device()
    forkserver.prefer("triton" if device.startswith("cuda") else "torch")  # before the first child: one server
    info, _ = survey_apart(device, with_limits=False)
    environment = {"device": dict(info), "versions": versions(), "platform": sys.platform, "date": utc_now()}
    skipped = {version.label: _skip_reason(pair, version, info) for version in chosen}
    able = [version for version in chosen if not skipped[version.label]]
    yield from (
        (version, Recording(f"skipped: {skipped[version.label]}"), None) for version in chosen if version not in able
    )
    for name in sizes_of(pair, size, info["kind"] == "cpu") if able else ():
        try:
            recordings = worker.call(_record, able, pair.sizes[name], device, environment=environment_on(device))
        except worker.ChildFailed as death:
            recordings = {version.label: Recording(str(death)) for version in able}
        for version in able:
            yield version, *_profile(pair, version, name, environment, recordings[version.label])


def _record(
    versions: Sequence[Version], arguments: dict[str, Any], device: str, report: Report
) -> dict[str, Recording]:
    """In the child, which has torch; the parent needs none."""
    from common.profiling.recorder import record_versions

    return record_versions(versions, arguments, device, report)


def _profile(
    pair: Pair, version: Version, size: str, environment: dict[str, Any], recording: Recording
) -> tuple[Recording, Profile | None]:
    if recording.problem:
        return recording, None
    arguments, code = as_json(pair.sizes[size]), source_hash(pair)
    times = recording.call_s, recording.profiled_s
    about = About(pair.chapter, pair.name, version.label, size, arguments, code, environment, *times)
    try:
        return recording, fitted(Profile(about, list(recording.events)))
    except RecordError as error:
        return Recording(str(error)), None


def _skip_reason(pair: Pair, version: Version, info: dict[str, Any]) -> str:
    no_gpu = "needs an NVIDIA GPU" if info["kind"] == "cpu" and "triton" in version.imports else ""
    several = "runs in several processes: start it with torchrun under a profiler" if pair.ranks > 1 else ""
    return skip_reason(version, info, info["gpus"]) or no_gpu or several
