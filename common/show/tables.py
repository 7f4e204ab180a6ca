"""Results as entries of a table: cells of each candidate, remarks, where and when they were recorded."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from common import stats
from common.pairs.pair import class_of, short
from common.record.outcome import Cause, Finding, Verdict
from common.record.result import Arm, PairResult, Record, Row
from common.show import formats, words
from common.show.formats import digits, seconds
from common.show.layout import Entry
from common.show.recorded_column import NO_GPU_RESULTS, GpuResults
from common.show.ways_out import way_out
from common.show.words import VERDICTS, word

ON_GPU = "recorded on a GPU"  # a column of a machine without one
HEADINGS = (
    "verdict", "speedup", "95 % interval", "time", "% of limit", "throughput", "% of datasheet", "vs library",
    "host time", ON_GPU,
)  # fmt: skip
LIMIT_HEADINGS = ("resource", "measured", "datasheet", "how", "datasheet's source")
GRADES = ((1.02, "A+"), (0.98, "A"), (0.9, "B"), (0.75, "C"), (0.5, "D"))
NOTHING = "Nothing is recorded yet."
APART = 1.05  # the quotient of two median times may lie this far outside the interval of their ratio


class Measured(Protocol):
    """What says where, when and with which software it was made: a record, findings, a machine's datasheet."""

    @property
    def environment(self) -> dict[str, Any]: ...


def ratio(row: Row) -> str:
    """The speedup with its interval, and its precision where that is the lesson."""
    return " ".join(filter(None, (speedup(row), interval(row))))


def speedup(row: Row) -> str:
    return "" if row.ratio is None else f"{digits(row.ratio)}x"


def interval(row: Row) -> str:
    """The interval of a speedup, then its precision where that is the lesson."""
    if row.ratio is None:
        return ""
    ends = f"[{digits(row.interval[0])}, {digits(row.interval[1])}]" if row.interval else ""
    return " ".join(filter(None, (ends, row.precision)))


def resource(pair: PairResult, arm: Arm) -> str:
    return (arm.limit_by or pair.limit_by).removesuffix("_bytes").removesuffix("_flops")


def share(pair: PairResult, row: Row) -> str:
    """What a variant reaches of the measured limit and of the datasheet's, and the resource, in words."""
    arm = pair.arms.get(row.variant)
    if row.ratio is None or arm is None or arm.of_limit is None:
        return ""
    sheet = f", {percent(arm.of_datasheet)} of the datasheet's" if arm.of_datasheet is not None else ""
    return f"{percent(arm.of_limit)} of the {resource(pair, arm)} limit{sheet}"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %" if value < 0.01 else f"{100 * value:.0f} %"


def time(arm: Arm, spread: bool) -> str:
    """An arm's median; with `spread`, also half the interquartile range of its samples, in % of the median."""
    return seconds(arm.median_s) + (f" ±{100 * stats.spread(arm.seconds):.1f} %" if spread else "")


def times(pair: PairResult, row: Row) -> str:
    arms = [pair.arms[label] for label in (row.versus, row.variant) if row.ratio is not None]
    return " -> ".join(seconds(arm.median_s) for arm in arms)


def rate(pair: PairResult, label: str) -> str:
    """What a candidate moves or computes per second, counted by the minimum work: GB/s or TFLOP/s."""
    amount = pair.cost.get(pair.limit_by)
    return formats.rate(amount / pair.arms[label].median_s, pair.limit_by) if amount else ""


def variant(row: Row) -> str:
    """`fused`, or `fused vs vectorized` if the row is not against the baseline."""
    versus = "" if row.versus == "baseline" else f" vs {short(row.versus)}"
    return short(row.variant) + versus


def libraries(pair: PairResult, row: Row, spread: bool = False) -> str:
    """Each library's time / the variant's time, then a grade, or the row's precision if the library's differs.

    A row whose verdict is `unsure` has no grade. With `spread`, also the library's time.
    """
    parts = []
    for label, value in row.vs_library.items():
        kind, _, name = label.partition("/")
        precision = value.get("precision", "")
        letter = "" if row.verdict == Verdict.UNSURE else grade(value["ratio"])
        mark = "ceiling" if kind == "yardstick" else row.precision or letter
        if precision:  # the library's precision, which is then the row's too
            mark = ", ".join(filter(None, (letter, f"both {precision}")))
            name = "" if name == precision else name
        library_time = f"({time(pair.arms[label], spread)})" if spread else ""
        parts.append(" ".join(filter(None, (f"{digits(value['ratio'])}x", name, mark, library_time))))
    return ", ".join(parts)


def grade(ratio: float) -> str:
    """The grade of library time / variant time. A+: the variant is at least 2 % faster; F: over twice as long."""
    return next((name for least, name in GRADES if ratio >= least), "F")


def grade_legend(pairs: Iterable[PairResult]) -> list[str]:
    """A line that says what the grades in the column "vs library" are, if there are any."""
    rows = [row for pair in pairs for row in pair.rows if row.verdict != Verdict.UNSURE]
    calls = ((row, *call) for row in rows for call in row.vs_library.items())
    if not any(name.startswith("library") and of.get("precision", "") == row.precision for row, name, of in calls):
        return []
    levels = ", ".join(f"{letter} from {least:g}x" for least, letter in GRADES)
    return [f"vs library: the library's time over the version's, and its grade: {levels}, F below"]


def name_with_size(pair: PairResult) -> str:
    """A pair's name, followed by the size unless that is the default."""
    return pair.name if class_of(pair.size) == "default" else f"{pair.name} {pair.size}"


def _candidate_cells(pair: PairResult, label: str, spread: bool, is_baseline: bool = False) -> dict[str, str]:
    """The cells about one candidate's own time. Beside the baseline's share of the limit stands the resource."""
    arm = pair.arms[label]
    limit, sheet = (percent(share) if share is not None else "" for share in (arm.of_limit, arm.of_datasheet))
    shows_resource = limit and (is_baseline or resource(pair, arm) != resource(pair, pair.arms["baseline"]))
    return {
        "time": time(arm, spread),
        "% of limit": f"{resource(pair, arm)} {limit}" if shows_resource else limit,
        "throughput": rate(pair, label),
        "% of datasheet": sheet,
        "host time": seconds(arm.host_s) if arm.host_s is not None else "",
    }


def table(results: Sequence[PairResult], old: GpuResults = NO_GPU_RESULTS, spread: bool = False) -> list[Entry]:
    """The entries of all results; those of a chapter under its name if there are several."""
    entries, many = list[Entry](), len({pair.chapter for pair in results}) > 1
    for number, pair in enumerate(results):
        if many and pair.chapter != results[number - 1].chapter:
            entries.append(Entry(pair.chapter, is_title=True, styles={"": "bold underline"}))
        entries += entries_of(pair, old.result_for(pair), old.device, spread)
    return entries


def entries_of(pair: PairResult, old: PairResult | None = None, device: str = "", spread: bool = False) -> list[Entry]:
    """A title with the baseline's time, then a line for each conclusion.

    `old`: what is recorded of the pair on another `device`: it stands, dimmed and with the device's name, in place of
    what cannot be timed here, and otherwise in a column of its own. `spread`: also of the times.
    """
    old_rows = {(row.variant, row.versus): row for row in old.rows if row.ratio} if old else {}
    entries = []
    for row in pair.rows:
        recorded = old_rows.get((row.variant, row.versus))
        if old and recorded and row.verdict in (Verdict.SKIPPED, Verdict.VERIFIED):
            state = device if row.verdict == Verdict.SKIPPED else f"{row.verdict}, {device}"
            entries.append(_entry(old, recorded, {"verdict": state}, spread, {"": "dim"}))
            rungs = [rung for rung in old_rows.values() if rung.variant == row.variant and rung != recorded]
            entries += [_entry(old, rung, {"verdict": device}, spread, {"": "dim"}) for rung in rungs]
        else:
            beside = {ON_GPU: f"{device} {ratio(recorded)}"} if recorded else {}
            styles = {"verdict": VERDICTS[row.verdict].style, "speedup": "bold"}
            entries.append(_entry(pair, row, {"verdict": word(row.verdict), **beside}, spread, styles))
    timed = pair if pair.arms else old if any("" in entry.styles for entry in entries) else None
    title = _candidate_cells(timed, "baseline", spread, is_baseline=True) if timed else {}
    return [Entry(name_with_size(pair), title, is_title=True), *entries]


def _entry(pair: PairResult, row: Row, cells: Mapping[str, str], spread: bool, styles: Mapping[str, str]) -> Entry:
    all_cells = {**cells, "speedup": speedup(row), "95 % interval": interval(row)}
    if row.versus != "baseline":
        return Entry(f"vs {short(row.versus)}", all_cells, short(row.variant), styles=styles)
    if row.ratio is not None:
        all_cells |= {**_candidate_cells(pair, row.variant, spread), "vs library": libraries(pair, row, spread)}
    return Entry(short(row.variant), all_cells, styles=styles)


def tally(rows: Iterable[Row]) -> str:
    """How many versions have each verdict: `11 faster, 2 same, 1 slower`. Rows against other versions do not count."""
    counts = Counter(row.verdict for row in rows if row.versus == "baseline")
    return ", ".join(f"{counts[verdict]} {word(verdict)}" for verdict in VERDICTS if counts[verdict])


# Remarks


def remarks(pair: PairResult, row: Row) -> list[Finding]:
    """The reason of a row's verdict, then the variant's notes: they are shown once, in its row against the baseline.

    Then whether the two times tell another story than the speedup: they are medians of their own.
    """
    notes = row.notes if row.versus == "baseline" else []
    return [finding for finding in (row.reason, *notes, _disagreement(pair, row)) if finding]


def _disagreement(pair: PairResult, row: Row) -> Finding | None:
    if row.ratio is None or row.interval is None:
        return None
    quotient = pair.arms[row.versus].median_s / pair.arms[row.variant].median_s
    low, high = row.interval
    if low / APART <= quotient <= high * APART:
        return None
    return Finding(Cause.MEDIANS_DISAGREE, {"times": digits(quotient)})


def by_cause(pairs: Sequence[PairResult], left_out: Sequence[Cause] = ()) -> list[str]:
    """The remarks on all versions, one line a cause. `left_out`: causes that are not shown."""
    causes: dict[tuple[str, str], dict[str, dict[str, list[str]]]] = {}  # (cause, way out) -> case -> pair -> versions
    variants = {name_with_size(pair): {variant(row) for row in pair.rows} for pair in pairs}
    for pair in pairs:
        findings = [(variant(row), finding) for row in pair.rows for finding in remarks(pair, row)]
        if pair.arms and (bound := pair.arms["baseline"].host_bound):
            findings.append(("baseline", bound))
        for name, finding in findings:
            if finding.cause not in left_out:
                what, case = words.parts(finding)
                key = (what or case, way_out(finding))
                by_pair = causes.setdefault(key, {}).setdefault(case * bool(what), {})
                by_pair.setdefault(name_with_size(pair), []).append(name)
    lines = {key: _cause_line(key[0], by_case, variants) for key, by_case in causes.items()}
    return [f"{line} -> {way}" if way else line for (_, way), line in lines.items()]


def _cause_line(cause: str, by_case: Mapping[str, dict[str, list[str]]], variants: Mapping[str, set[str]]) -> str:
    """A cause with the versions concerned, a pair's name for all of its own; and what is said of each of them."""

    def listing(by_pair: dict[str, list[str]]) -> str:
        return ", ".join(pair + f" {', '.join(own)}" * bool(variants[pair] - {*own}) for pair, own in by_pair.items())

    listed = {case: listing(by_pair) for case, by_pair in by_case.items()}
    clause = cause.removesuffix(": ")
    if len(listed) == 1:
        ((case, names),) = listed.items()
        text = f"{clause} ({case})" if case and cause != clause else cause + case
        return f"{text}: {names}"
    return f"{clause.strip()}: " + ", ".join(f"{names} ({case})" if case else names for case, names in listed.items())


# Origins


def limit_rows(limits: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """The cells under LIMIT_HEADINGS, one row per resource."""
    rows = []
    for key, limit in limits.items():
        peaks = [limit["measured"], limit["datasheet"]]
        peak_texts = [formats.rate(peak, key, formats.four_digits) if peak else "" for peak in peaks]
        rows.append([key, *peak_texts, limit["how"], limit["source"]])
    return rows


def origin(record: Measured) -> str:
    """The device and date of a record."""
    dates = record.environment.get("dates", [record.environment["date"][:10]])
    return f"{record.environment['device']['name']}, {' and '.join(dates)}"


def source(*files: tuple[Path, Measured]) -> str:
    """Where, when and with which software files were recorded: a line for equal origins, a link a file, with pairs."""
    links: dict[str, dict[Path, dict[str, None]]] = {}  # origin -> path -> pairs, in order
    for path, record in files:
        software = ", ".join(f"{name} {version}" for name, version in record.environment["versions"].items())
        pairs = record.pairs if isinstance(record, Record) and len(files) > 1 else []
        of_path = links.setdefault(f"Recorded on {origin(record)} ({software})", {}).setdefault(path, {})
        of_path |= dict.fromkeys(pair.name for pair in pairs)
    return "\n\n".join(f"{heading}: {_links(names_by_path)}" for heading, names_by_path in links.items())


def _links(names_by_path: dict[Path, dict[str, None]]) -> str:
    return ", ".join(link(path) + f" ({', '.join(names)})" * bool(names) for path, names in names_by_path.items())


def link(path: Path) -> str:
    return f"[{path.parent.name}/{path.name}](/recorded/{path.parent.name}/{path.name})"
