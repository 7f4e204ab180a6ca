"""Profiles of pairs: traces after a run (benchmark.py --profile), timelines (--timeline PAIR)."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from common.isolation import interrupt
from common.pairs.pair import Pair, Version, short
from common.pairs.user_error import UserError, printable, suggestions, width_of
from common.profiling.counters import CannotCount, read_counters
from common.profiling.recorder import profiles_of
from common.record import profile_file
from common.record.files import RecordError, make_folder
from common.record.profile_file import Profile
from common.show.timeline_text import timeline_text


def profile_pairs(pairs: list[Pair], out: Path, device: str | None = None) -> list[Path]:
    """Print each version's timeline, write its trace; name one that cannot run. Returns the traces."""
    make_folder(out)
    traces = []
    for pair in pairs:
        for version, found in profiles_of(pair, pair.versions, "default", device):
            if isinstance(found, Profile):
                print(timeline_text(found, width_of(sys.stdout)))
                profile_file.save(found, path := out / f"{version.path.stem}.json.gz")
                traces.append(path)
            else:
                print(f"{version.path.stem}: {found}")
    print(f"{len(traces)} traces in {out} (open them in chrome://tracing or Perfetto)")
    return traces


def timeline_pairs(args: Namespace, pairs: list[Pair]) -> int:
    """Draw the timelines of pairs' versions, or of a library, fresh or recorded. Exit status 1 if one is missing."""
    label = args.timeline.partition(":")[2]
    chosen = {pair.name: [pair.by_name[label]] if label in pair.by_name else [] for pair in pairs}
    if label and not any(chosen.values()):
        names = dict.fromkeys(name for pair in pairs for name in pair.by_name)
        raise UserError(f"{pairs[0].name} has no version {label!r}: {suggestions(label, names, '--list')}")
    draw = _recorded_timelines if args.recorded else _fresh_timelines
    problems = 0
    with interrupt.hold_signals():
        for pair in pairs:
            for problem in draw(args, pair, chosen[pair.name] if label else pair.versions):
                print(f"benchmark.py: {printable(problem)}", file=sys.stderr)
                problems += 1
    return 1 if problems else 0


def _recorded_timelines(args: Namespace, pair: Pair, chosen: Sequence[Version]) -> Iterator[str]:
    """Print timelines; yields the problem of each version that has none."""
    for version in chosen:
        try:
            print(timeline_text(profile_file.recorded(pair, version.label, args.size), width_of(sys.stdout)))
        except RecordError as error:
            yield str(error)


def _fresh_timelines(args: Namespace, pair: Pair, chosen: Sequence[Version]) -> Iterator[str]:
    """The same of profiles made now; with --record they are kept, with --counters with a GPU's counters."""
    for version, profile in profiles_of(pair, chosen, args.size, args.device):
        name = f"{pair.name} {short(version.label)}"
        if not isinstance(profile, Profile):
            yield f"{name}: {profile}"
            continue
        if args.record:
            profile_file.keep(profile)  # already: counters take their time, and may fail
        if args.counters:
            try:
                rows, missing = read_counters(pair, version, pair.sizes[profile.about.size])
                profile = profile_file.fitted(structs.replace(profile, counters=rows, no_counters=missing))
            except (CannotCount, RecordError) as error:
                profile = structs.replace(profile, no_counters=str(error))
                yield f"{name}: {error}"
        print(timeline_text(profile, width_of(sys.stdout)))
        if args.record:
            print(f"recorded in {profile_file.keep(profile)}")
