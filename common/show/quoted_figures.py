"""Figures that prose quotes, from recorded/: each is a link to its page, whose title names the row it comes from.

    [7.23x](/recorded/nvidia_h200/ch1.md "arithmetic_intensity fused: ratio")
    [0.703x](/recorded/nvidia_h200/ch3.md "softmax online: ratio at large/4096x16384/bf16")

A title is PAIR VARIANT: FIELD, then ` at SIZE` but for the default. VARIANT is as in the tables: `optimized`, `fused`,
`fused vs vectorized`; `baseline` has a time and a peak only. FIELD is `ratio`, `time`, `peak` (the most memory that a
call has in use at once), `limit` (what it reaches of the measured limit), `verdict`, or `library`. The generator writes
what stands in the brackets. For a pair and variant that exist and have no record yet that is `not recorded yet`;
for what ran and has no such figure, its verdict (`too short`).

Of a recorded profile FIELD is `profile busy` or `profile idle` (the GPU's share of a call), `profile launches`,
`profile gap` (the longest, and what the GPU waits for), `profile time_1` (of what works longest, numbered as
`--timeline` does), or a counter of the longest kernel: `profile dram_1`, `sm_1`, `occupancy_1`, `sectors_1`, `stall_1`;
of the second `_2`. VARIANT may be a library's function, too.
"""

import re
from collections.abc import Callable
from functools import cache

from common.pairs.pair import ROOT, class_of, discover, short
from common.pairs.user_error import UserError
from common.record import profile_file
from common.record.files import on_one_gpu
from common.record.record_file import combine_records
from common.record.result import Arm, PairResult
from common.record.store import chapter_records, current_filter
from common.show.formats import binary, digits, seconds
from common.show.summary import fastest_library
from common.show.tables import variant, word
from common.show.timeline_text import quotable

QUOTED = re.compile(
    r'\[[^\[\]]*\]\(/recorded/(?P<device>\w+)/(?P<chapter>ch\d+)\.md (?P<mark>\\?")(?P<title>[^"\\]+)(?P=mark)\)'
)
TITLE = re.compile(r"(?P<pair>\w+) (?P<variant>[\w ]+): (?P<field>(?:profile )?\w+)(?: at (?P<size>[\w/]+))?")
FIELDS = {"ratio", "time", "peak", "limit", "verdict", "library"}
OF_BASELINE = {"time", "peak"}
OF_PROFILE = re.compile(r"profile (busy|idle|launches|gap|time_[1-6]|(dram|sm|occupancy|sectors|stall)_[1-8])")
NAMED = "busy, idle, launches, gap, time_1 to time_6; dram, sm, occupancy, sectors, stall, each _1 to _8"
STALE, NOT_YET = "stale", "not recorded yet"


def fill_in_figures(text: str) -> str:
    """A text, or a notebook's JSON, with all its quoted figures made anew.

    Raises UserError where one names what is not recorded.
    """

    def anew(match: re.Match[str]) -> str:
        return link(match["device"], match["chapter"], match["title"]).replace('"', match["mark"])

    return QUOTED.sub(anew, text)


def link(device: str, chapter: str, title: str) -> str:
    """A figure as a link, in Markdown."""
    return f'[{figure(device, chapter, title)}](/recorded/{device}/{chapter}.md "{title}")'


def newest_figure(title: str) -> str:
    """Of one GPU (`on_one_gpu`), under a title that begins with the chapter: `ch1 coalescing wide: ratio`."""
    chapter, _, rest = title.partition(" ")
    on_gpu = on_one_gpu(chapter_records(chapter))
    if not on_gpu:
        raise UserError(f'nothing recorded is called "{title}"')
    return figure(on_gpu[0][0].parent.name, chapter, rest)


def newest_interval(title: str) -> tuple[float, float] | None:
    """Of a `ratio` that `newest_figure` has, the interval of the measurement."""
    chapter, _, rest = title.partition(" ")
    parts = TITLE.fullmatch(rest)
    if not parts or parts["field"] != "ratio":
        return None
    size = parts["size"] or "default"
    device = on_one_gpu(chapter_records(chapter))[0][0].parent.name
    result = _results(device, chapter, class_of(size)).get((parts["pair"], size))
    return next((row.interval for row in result.rows if variant(row) == parts["variant"]), None) if result else None


def figure(device: str, chapter: str, title: str) -> str:
    """What is recorded under a title, or why there is nothing.

    That is `stale` if the pair has changed since, `not recorded yet` if it was never run, or its verdict (`too short`).

    Raises UserError for a title that names no pair, variant, timed size or field of the chapter.
    """
    if parts := TITLE.fullmatch(title):
        size = parts["size"] or "default"
        if parts["field"].startswith("profile "):
            return _of_profile(device, chapter, parts, size)
        result = _results(device, chapter, class_of(size)).get((parts["pair"], size))
        if result and not _is_current(chapter)(result):
            return STALE
        fields = _fields(result, parts["variant"]) if result else {}
        if text := fields.get(parts["field"]):
            return text
        if "time" not in fields and _is_of_chapter(chapter, parts, size):
            return fields.get("verdict", NOT_YET)
    raise UserError(f'{chapter}: nothing recorded on {device} is called "{title}"')


def _of_profile(device: str, chapter: str, parts: re.Match[str], size: str) -> str:
    """The same of a recorded profile."""
    field = OF_PROFILE.fullmatch(parts["field"])
    fields = _profile_fields(device, chapter, parts["pair"], parts["variant"], size) if field else None
    if not field or fields is None:
        raise UserError(f'{chapter}: "{parts[0]}" names no profile: its fields are {NAMED}')
    if isinstance(fields, str):
        return fields
    if found := fields.get(field[1]):
        return found
    raise UserError(f'{chapter}: "{parts[0]}": this profile has no {field[1]}')


@cache
def _profile_fields(device: str, chapter: str, name: str, label: str, size: str) -> dict[str, str] | str | None:
    """All that prose quotes of a profile; STALE or NOT_YET without one; None if the chapter has no such version."""
    pair = next((pair for pair in discover(ROOT / chapter) if pair.name == name), None)
    if not pair or label not in pair.by_name or size not in pair.timed_sizes:
        return None
    profiles = profile_file.find(pair, label, size, device)
    current = next((profile for profile in profiles if profile_file.is_current(profile, pair)), None)
    return quotable(current) if current else STALE if profiles else NOT_YET


def _is_of_chapter(chapter: str, parts: re.Match[str], size: str) -> bool:
    """Whether the chapter, as it is now, has what a title names."""
    for pair in discover(ROOT / chapter):
        if pair.name == parts["pair"] and size in pair.timed_sizes:
            labels = {f"{short(one.label)} vs {short(one.versus)}" for one in pair.variants if one.versus}
            labels |= {short(version.label) for version in pair.variants}
            fields = {**dict.fromkeys(labels, FIELDS), "baseline": OF_BASELINE}
            return parts["field"] in fields.get(parts["variant"], ())
    return False


def _arm_fields(arm: Arm) -> dict[str, str]:
    return {"time": seconds(arm.median_s)} | ({"peak": binary(arm.peak_bytes)} if arm.peak_bytes else {})


def _fields(result: PairResult, label: str) -> dict[str, str]:
    """Field -> figure, of a variant as a title names it; without a time if it was not timed."""
    if label == "baseline":
        return _arm_fields(result.arms[label]) if result.arms else {}
    row = next((row for row in result.rows if variant(row) == label), None)
    fields = {"verdict": word(row.verdict)} if row else {}
    if row and row.ratio is not None:
        arm = result.arms[row.variant]
        fields |= {"ratio": f"{digits(row.ratio)}x", **_arm_fields(arm)}
        if arm.of_limit is not None:
            fields["limit"] = f"{arm.of_limit:.0%}"
        if best := fastest_library(result, row):
            fields["library"] = f"{digits(best[0])}x"
    return fields


@cache
def _results(device: str, chapter: str, of_class: str) -> dict[tuple[str, str], PairResult]:
    records = [record for path, record in chapter_records(chapter, of_class) if path.parent.name == device]
    record = combine_records(records)
    return {(pair.name, pair.size): pair for pair in record.pairs} if record else {}


@cache
def _is_current(chapter: str) -> Callable[[PairResult], bool]:
    return current_filter(discover(ROOT / chapter))
