"""Profiles of pairs: operations and traces after a run (benchmark.py --profile), timelines (--timeline PAIR)."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs, to_builtins

from common.isolation import forkserver, interrupt, worker
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.pairs.pair import Pair, Version, short, sizes_of, skip_reason
from common.pairs.source import source_hash
from common.pairs.user_error import UserError, printable, suggestions, width_of
from common.profiling import profile_file
from common.profiling.counters import CannotCount, read_counters
from common.profiling.profile_file import About, Profile, Recording
from common.profiling.timeline_text import timeline_text
from common.record.files import RecordError, make_folder, utc_now

Profiled = tuple[Version, Recording, Profile | None]  # a profile, unless the recording has a problem


def profile_pairs(pairs: list[Pair], out: Path, device: str | None = None) -> list[Path]:
    """Print each version's costliest operations, write its trace; name one that cannot run. Returns the traces."""
    make_folder(out)
    traces = []
    for pair in pairs:
        for version, recording, profile in profiles_of(pair, pair.versions, "default", device):
            if profile:
                print(f"{version.path.stem} ({profile.about.size})\n{recording.table}")
                profile_file.save(profile, path := out / f"{version.path.stem}.json.gz")
                traces.append(path)
            else:
                print(f"{version.path.stem}: {recording.problem}")
    print(f"{len(traces)} traces in {out} (open them in chrome://tracing or Perfetto)")
    return traces


def profiles_of(pair: Pair, chosen: Sequence[Version], size: str, device: str | None) -> Iterator[Profiled]:
    """Profile versions of a pair, all in one child, at each size of this name. Raises DeviceError."""
    from common.profiling.recorder import record_versions  # a slow import

    device = device or default_device()
    info, _ = survey_apart(device, with_limits=False)
    environment = {"device": dict(info), "versions": versions(), "platform": sys.platform, "date": utc_now()}
    skipped = {version.label: _skip_reason(pair, version, info) for version in chosen}
    able = [version for version in chosen if not skipped[version.label]]
    yield from (
        (version, Recording(f"skipped: {skipped[version.label]}"), None) for version in chosen if version not in able
    )
    forkserver.prefer(info["kind"])
    for name in sizes_of(pair, size, info["kind"] == "cpu") if able else ():
        try:
            recordings = worker.call(record_versions, able, pair.sizes[name], device)
        except worker.ChildFailed as death:
            recordings = {version.label: Recording(str(death)) for version in able}
        for version in able:
            yield version, *_profile(pair, version, name, environment, recordings[version.label])


def _profile(
    pair: Pair, version: Version, size: str, environment: dict[str, Any], recording: Recording
) -> tuple[Recording, Profile | None]:
    if recording.problem:
        return recording, None
    arguments, code = to_builtins(pair.sizes[size]), source_hash(pair)
    about = About(
        pair.chapter,
        pair.name,
        version.label,
        size,
        arguments,
        code,
        environment,
        recording.call_s,
        recording.profiled_s,
    )
    try:
        return recording, profile_file.fitted(Profile(about, list(recording.events)))
    except RecordError as error:
        return Recording(str(error)), None


def _skip_reason(pair: Pair, version: Version, info: dict[str, Any]) -> str:
    no_gpu = "needs an NVIDIA GPU" if info["kind"] == "cpu" and "triton" in version.imports else ""
    several = "runs in several processes: start it with torchrun under a profiler" if pair.ranks > 1 else ""
    return skip_reason(version, info, info["gpus"]) or no_gpu or several


def timeline_pairs(args: Namespace, pairs: list[Pair]) -> int:
    """Draw the timelines of the pairs' versions, fresh or recorded. Exit status 1 if one is missing."""
    label = args.timeline.partition(":")[2]
    chosen = {
        pair.name: [version for version in pair.versions if label in ("", short(version.label))] for pair in pairs
    }
    if not any(chosen.values()):
        names = dict.fromkeys(short(version.label) for pair in pairs for version in pair.versions)
        raise UserError(f"{pairs[0].name} has no version {label!r}: {suggestions(label, names, '--list')}")
    draw = _recorded_timelines if args.recorded else _fresh_timelines
    problems = 0
    with interrupt.hold_signals():
        for pair in pairs:
            for problem in draw(args, pair, chosen[pair.name]):
                print(f"benchmark.py: {printable(problem)}", file=sys.stderr)
                problems += 1
    return 1 if problems else 0


def _recorded_timelines(args: Namespace, pair: Pair, chosen: Sequence[Version]) -> Iterator[str]:
    """Print timelines; yields the problem of each version that has none."""
    for version in chosen:
        try:
            print(timeline_text(profile_file.recorded(pair, version, args.size), width_of(sys.stdout)))
        except RecordError as error:
            yield str(error)


def _fresh_timelines(args: Namespace, pair: Pair, chosen: Sequence[Version]) -> Iterator[str]:
    """The same of profiles made now; with --record they are kept, with --counters with a GPU's counters."""
    for version, recording, profile in profiles_of(pair, chosen, args.size, args.device):
        if not profile:
            yield f"{version.path.stem}: {recording.problem}"
            continue
        if args.counters:
            try:
                rows = read_counters(pair, version, pair.sizes[profile.about.size])
                profile = profile_file.fitted(structs.replace(profile, counters=rows))
            except (CannotCount, RecordError) as error:
                profile = structs.replace(profile, no_counters=str(error))
                yield f"{version.path.stem}: {error}"
        print(timeline_text(profile, width_of(sys.stdout)))
        if args.record:
            print(f"recorded in {profile_file.keep(profile)}")
