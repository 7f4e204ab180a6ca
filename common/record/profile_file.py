"""A profile: the timeline of one call as a Chrome trace, which ui.perfetto.dev opens, with what it is a profile of.

Times in a trace are microseconds from the call's begin, as the trace's format has them; elsewhere they are seconds.
"""

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from common.pairs.pair import Pair, short
from common.pairs.source import source_hash
from common.record import files
from common.record.files import Format, RecordError, file_errors, file_of_device, write_file
from common.record.form import Seconds, Strict
from common.record.store import as_json, carried_codes

FORM = 1
MOST_BYTES = 100_000  # of a compressed profile: they are committed
Micros = Annotated[float, Meta(ge=0, le=1e12)]


class Event(Struct, frozen=True, omit_defaults=True):
    """An event of a trace. `ph`: X has a duration, s and f are an arrow's ends, M names a process or a thread."""

    name: str
    ph: str
    cat: str = ""
    pid: int = 0
    tid: int = 0
    ts: Micros = 0.0
    dur: Micros = 0.0
    id: int = 0
    bp: str = ""
    args: dict[str, Any] = {}  # a Struct copies it

    @property
    def end(self) -> float:
        return self.ts + self.dur


class About(Strict, frozen=True):
    """What was profiled. `call_s`: a call's time without the profiler, `profiled_s`: the drawn call's with it.

    `version`: its label, or the name of a library's function. `arguments`: those of `inputs`. `environment`: as a
    record has it. `left_out`: what of the trace was too large.
    """

    chapter: str
    pair: str
    version: str
    size: str
    arguments: dict[str, Any]
    source_hash: str
    environment: dict[str, Any]
    call_s: Seconds
    profiled_s: Seconds
    left_out: str = ""


class Profile(Struct, frozen=True):
    """A profile as its file has it. `counters`: a row a kernel, see counters.py; `no_counters`: which ones it lacks."""

    about: About
    traceEvents: list[Event]
    counters: list[dict[str, Any]] = []
    no_counters: str = ""
    form: int = FORM
    displayTimeUnit: str = "ns"


def _validate(profile: Profile) -> Profile:
    """Raises RecordError, or an error about a missing value."""
    about = profile.about
    if not (about.environment["device"]["name"] and about.environment["date"]):
        raise ValueError("the device lacks a name or a date")
    if any(event.end > 1e6 * about.profiled_s * 1.001 for event in profile.traceEvents if event.ph == "X"):
        raise ValueError("an event ends after the call")
    return profile


FORMAT = Format("a profile of the course", FORM, Profile, _validate, "profile again")


def load(path: Path) -> Profile:
    """Raises RecordError for a file that is damaged, or that another program wrote."""
    with file_errors(path, "read"):
        packed = path.read_bytes()
    try:
        text = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{path}: damaged, or not packed by gzip ({error})") from None
    profile: Profile = FORMAT.parse(path, text)
    return profile


def packed(profile: Profile) -> bytes:
    """The bytes of a profile's file: equal profiles have equal bytes."""
    return gzip.compress(msgspec.json.encode(profile, order="deterministic"), 9, mtime=0)


def spans(events: Iterable[Event], *categories: str) -> list[Event]:
    """The events of these categories that have a duration, in their order of time; of nested ones the outer first."""
    chosen = [event for event in events if event.ph == "X" and event.cat in categories]
    return sorted(chosen, key=lambda event: (event.ts, -event.dur))


def outermost(events: Iterable[Event], *categories: str) -> list[Event]:
    """The events of these categories that no other one of their thread contains."""
    found, ends = list[Event](), dict[int, float]()
    for event in spans(events, *categories):
        if event.end > ends.get(event.tid, -1.0):
            ends[event.tid] = event.end
            found.append(event)
    return found


def fitted(profile: Profile) -> Profile:
    """The profile, without what a reader misses least if its file were too large. Raises RecordError if it stays so."""
    for what in ("arrows", "operators within operators", "operators"):
        if len(packed(profile)) <= MOST_BYTES:
            return profile
        top = {"operators within operators": outermost(profile.traceEvents, "cpu_op")}.get(what, [])
        leaves = "ac2g" if what == "arrows" else "cpu_op"
        events = [event for event in profile.traceEvents if event.cat != leaves] + top
        left_out = ", ".join(filter(None, [profile.about.left_out, what]))
        profile = structs.replace(profile, traceEvents=events, about=structs.replace(profile.about, left_out=left_out))
    if (size := len(packed(profile))) > MOST_BYTES:
        limit = f"{size // 1000} KB, and {MOST_BYTES // 1000} are accepted"
        raise RecordError(f"its trace has {limit}: profile a smaller size")
    return profile


def _file_name(pair: str, version: str, size: str) -> str:
    """`add.fused.json.gz`, and of another size `add.fused.large_8192.json.gz`."""
    suffix = "" if size in ("default", "cpu") else "." + size.replace("/", "_")
    return f"{pair}.{short(version).replace('/', '_')}{suffix}.json.gz"


def keep(profile: Profile, folder: Path | None = None) -> Path:
    """Save under recorded/<device>/profiles/<chapter>/. Raises RecordError."""
    about = profile.about
    name = f"profiles/{about.chapter}/{_file_name(about.pair, about.version, about.size)}"
    save(profile, path := file_of_device(about.environment, name, folder))
    return path


def save(profile: Profile, path: Path) -> None:
    """Raises RecordError."""
    write_file(path, lambda file: file.write(packed(profile)))


def find(pair: Pair, version: str, size: str, device: str = "*", folder: Path | None = None) -> list[Profile]:
    """The recorded profiles of a version's label, the best first: of a GPU, the newest. `device`: its folder's name.

    Raises RecordError for a damaged one.
    """
    name = _file_name(pair.name, version, size)
    paths = sorted((folder or files.RECORDED).glob(f"{device}/profiles/{pair.chapter}/{name}"))
    return sorted(map(load, paths), key=_preference, reverse=True)


def recorded(pair: Pair, version: str, size: str = "default") -> Profile:
    """The best one that is of the pair as it is now. Raises RecordError: none is recorded, or it is stale."""
    what = f"{pair.name} {short(version)}" + f" at size {size}" * (size != "default")
    if not (profiles := find(pair, version, size)):
        raise RecordError(f"no profile of {what} is recorded: `benchmark.py --timeline {pair.name}` profiles it here")
    if not (current := [profile for profile in profiles if is_current(profile, pair)]):
        raise RecordError(f"the recorded profile of {what} is stale: the pair, or this size, has changed since")
    return current[0]


def is_current(profile: Profile, pair: Pair) -> bool:
    """Whether the pair has the arguments that were profiled, and the code, or code of equal work."""
    about = profile.about
    if about.arguments != as_json(pair.sizes.get(about.size)):
        return False
    device = about.environment["device"]["name"]
    return about.source_hash == source_hash(pair) or about.source_hash in carried_codes(pair, about.size, device)


def _preference(profile: Profile) -> tuple[str, str]:
    environment = profile.about.environment
    return environment["device"]["kind"], str(environment["date"])
