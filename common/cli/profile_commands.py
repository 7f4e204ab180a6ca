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
    for version, found in (item for pair in pairs for item in profiles_of(pair, pair.versions, "default", device)):
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
    chosen = [
        (pair, [pair.by_name[label]] if label else pair.versions) for pair in pairs if label in {"", *pair.by_name}
    ]
    if not chosen:
        names = dict.fromkeys(name for pair in pairs for name in pair.by_name)
        raise UserError(f"{pairs[0].name} has no version {label!r}: {suggestions(label, names, '--list')}")
    status = 0
    with interrupt.hold_signals():
        for pair, versions in chosen:
            for found in (_recorded if args.recorded else _fresh)(args, pair, versions):
                if isinstance(found, Profile):
                    print(timeline_text(found, width_of(sys.stdout)))
                    if args.record:
                        print(f"recorded in {profile_file.keep(found)}")
                else:
                    print(f"benchmark.py: {printable(found)}", file=sys.stderr)
                    status = 1
    return status


def _recorded(args: Namespace, pair: Pair, chosen: Sequence[Version]) -> Iterator[Profile | str]:
    for version in chosen:
        try:
            yield profile_file.recorded(pair, version.label, args.size)
        except RecordError as error:
            yield str(error)


def _fresh(args: Namespace, pair: Pair, chosen: Sequence[Version]) -> Iterator[Profile | str]:
    """Profiles made now, with --counters with a GPU's counters; where these cannot be read also why."""
    for version, found in profiles_of(pair, chosen, args.size, args.device):
        name = f"{pair.name} {short(version.label)}"
        if isinstance(found, str):
            yield f"{name}: {found}"
            continue
        if args.counters:
            if args.record:
                profile_file.keep(found)  # already: counters take their time
            try:
                rows, missing = read_counters(pair, version, pair.sizes[found.about.size])
                found = profile_file.fitted(structs.replace(found, counters=rows, no_counters=missing))
            except (CannotCount, RecordError) as error:
                yield f"{name}: {error}"
                found = structs.replace(found, no_counters=str(error))
        yield found
