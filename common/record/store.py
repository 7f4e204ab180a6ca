"""Records under recorded/<device>/: a file for each chapter and each class of sizes, with the newest result of each.

`<chapter>.json` holds the default sizes, `<chapter>_<class>.json` a class: `ch3_large.json` has `large/*`. A file has
the runs that its results are from, each with its date, software and limits: two results may differ in them.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.pairs.pair import Pair, class_of
from common.pairs.source import source_hash
from common.record import files
from common.record.files import RecordError, file_of_device, lock_folder
from common.record.outcome import FAILED
from common.record.record_file import FORMAT, date_of, load_records, save_records
from common.record.result import PairResult, Record

TimedSizes = dict[tuple[str, str], bool]  # name of a pair, size -> whether the newest result was timed
Records = list[tuple[Path, Record]]  # each with its file, newest first
CLASSES = ("default", "small", "medium", "large", "xlarge", "long", "batch")  # the order of classes; others follow


def chapter_records(
    chapter: str, of_class: str = "default", folder: Path | None = None, problems: files.Problems | None = None
) -> Records:
    """A chapter's records of one class of sizes, of all devices, newest first.

    Each record lacks the pairs and sizes that a newer record of its device has, unless only the older one was timed. A
    bad file is noted in `problems`; without `problems` it raises RecordError.
    """
    newest: dict[Path, TimedSizes] = {}
    records = []
    names = f"{stem(chapter, of_class)}.*json"  # `ch3.json`; `ch3.<date>.json` beside one that could not be read
    dated_runs = [(path, run) for path, runs in FORMAT.contents(names, folder, problems) for run in reversed(runs)]
    for path, record in files.newest_first(dated_runs):
        pairs = _newer_results(record.pairs, newest.setdefault(path.parent, {}))
        records += [(path, replace(record, pairs=pairs))] if pairs else []
    return records


def _newer_results(results: Iterable[PairResult], newest: TimedSizes) -> list[PairResult]:
    """The results of which no newer one is among the `newest`, or only one that was not timed. They are added."""
    new = [result for result in results if bool(result.arms) > newest.get((result.name, result.size), -1)]
    newest |= {(result.name, result.size): bool(result.arms) for result in new}
    return new


def recorded_classes(chapter: str, folder: Path | None = None) -> list[str]:
    """The classes of sizes in which something of a chapter is recorded, in their order."""
    stems = {path.name.split(".")[0] for path in (folder or files.RECORDED).glob(f"*/{chapter}[._]*json")}
    names = [stem.removeprefix(chapter).removeprefix("_") or "default" for stem in stems]
    return sorted(names, key=lambda name: ([*CLASSES, name].index(name), name))


def recorded_sizes(chapter: str, folder: Path | None = None, problems: files.Problems | None = None) -> Records:
    """The records of each class of sizes of one GPU (`files.on_one_gpu`), by class; see `chapter_records`.

    They are several runs: a statement about two of them must name both origins.
    """
    names = recorded_classes(chapter, folder)
    records = [item for name in names for item in chapter_records(chapter, name, folder, problems)]
    newest = files.on_one_gpu(sorted(records, key=lambda item: date_of(item[1]), reverse=True))
    return [item for item in records if newest and item[0].parent == newest[0][0].parent]


def keep_record(record: Record, folder: Path | None = None) -> list[Path]:
    """Merge a chapter's record into its files, one for each class of sizes. Returns the files. Raises RecordError.

    Results that a newer one replaces go: see `chapter_records`. Beside a file that cannot be read the record gets one.
    """
    paths = []
    for chapter, of_class in dict.fromkeys((pair.chapter, class_of(pair.size)) for pair in record.pairs):
        path = file_of_device(record.environment, f"{stem(chapter, of_class)}.json", folder)
        part = replace(record, pairs=[pair for pair in record.pairs if class_of(pair.size) == of_class])
        with lock_folder(path.parent):
            try:
                runs = load_records(path) if path.exists() else []
            except RecordError:
                path = path.with_stem(f"{path.stem}.{''.join(filter(str.isdigit, date_of(record)[:19]))}")
                runs = load_records(path) if path.exists() else []
            by_date = sorted([*runs, part], key=date_of)  # two programs may measure at a time
            save_records(merge_runs(by_date), path)
        paths.append(path)
    return paths


def merge_runs(runs: Sequence[Record]) -> list[Record]:
    """What counts of several runs, in their order: of equally old results the later one."""
    results, newest, by_number = [pair for run in runs for pair in run.pairs], TimedSizes(), dict[int, Record]()
    for number in sorted(range(len(runs)), key=lambda number: (date_of(runs[number]), number), reverse=True):
        pairs = [_with_proven_hashes(pair, results) for pair in _newer_results(runs[number].pairs, newest)]
        by_number |= {number: replace(runs[number], pairs=pairs)} if pairs else {}
    return [by_number[number] for number in sorted(by_number)]


def _with_proven_hashes(result: PairResult, earlier: Sequence[PairResult]) -> PairResult:
    """The result with the earlier hashes that `carry` proved to give the same work, at its arguments, as its code."""
    same = [old.carried for old in earlier if _identity(old) == _identity(result)]
    return replace(result, carried=list(dict.fromkeys(sum(same, result.carried))))


def _identity(result: PairResult) -> tuple[Any, ...]:
    return result.name, result.size, result.source_hash, as_json(result.sizes)


def current_filter(pairs: Sequence[Pair]) -> Callable[[PairResult], bool]:
    """A function: does a result belong to one of these pairs as it is now (same code, same arguments)?"""
    states = {pair.name: (source_hash(pair), as_json(pair.sizes)) for pair in pairs}

    def is_current(result: PairResult) -> bool:
        code, sizes = states.get(result.name, ("", {}))
        return result.source_hash == code and as_json(result.sizes) == sizes.get(result.size)

    return is_current


def carried_codes(pair: Pair, size: str, device: str) -> set[str]:
    """The hashes of code from which this device's row of a size was carried to the present code: of equal work."""
    records = [record for _, record in chapter_records(pair.chapter, class_of(size), problems={})]
    here = [record for record in records if record.environment["device"]["name"] == device]
    own = (pair.name, size, source_hash(pair))
    results = [result for record in here for result in record.pairs]
    return {code for each in results if (each.name, each.size, each.source_hash) == own for code in each.carried}


def added_variants(pair: Pair, result: PairResult) -> list[str]:
    """The variants of a pair that were added after a result was recorded: it has no row of them."""
    labels = {"baseline", *(row.variant for row in result.rows)}
    return [version.label for version in pair.versions if version.label not in labels]


def as_json(value: Any) -> Any:
    """The value as a record returns it: tuples become lists."""
    return json.loads(json.dumps(value))


def recordable_part(record: Record, pairs: Sequence[Pair]) -> tuple[Record, list[str]]:
    """(What may be recorded of a run, the reasons why the rest may not.)

    A pair may be recorded in a class of sizes if it is unchanged, was measured in full at all these sizes, and failed
    at none. On a CPU, `cpu` counts as the default. A skipped size counts as measured if another size was timed.
    """
    by_name = {pair.name: pair for pair in pairs}
    groups: dict[tuple[str, str], list[PairResult]] = {}
    for result in record.pairs:
        groups.setdefault((result.name, class_of(result.size)), []).append(result)
    recordable, reasons = [], []
    for (name, of_class), results in groups.items():
        if reason := _skip_reason(by_name.get(name), of_class, results, record.environment):
            reasons.append(f"not recorded: {name} {of_class}: {reason}")
        else:
            recordable += results
    return replace(record, pairs=recordable), reasons


def _skip_reason(pair: Pair | None, of_class: str, results: list[PairResult], environment: dict[str, Any]) -> str:
    if not pair:
        return "the course has no such pair"
    if not all(map(current_filter([pair]), results)):
        return "the pair has changed since"
    if failed := [result.size for result in results if any(row.verdict in FAILED for row in result.rows)]:
        return f"failed {', '.join(failed)}"
    sizes = {size for size in pair.sizes if class_of(size) == of_class}
    measured_sizes = {result.size for result in results}
    if of_class == "default":  # on a CPU: `cpu`, if the pair has it
        sizes = {"default"} if environment["device"]["kind"] == "cuda" else measured_sizes
    if missing := sorted(sizes - measured_sizes):
        return f"without {', '.join(missing)}"
    if environment["fast"]:
        return "measured with --fast"
    return "" if any(result.arms for result in results) else "nothing was timed"


def stem(chapter: str, of_class: str) -> str:
    """The name of the file of a class of sizes, without its suffix."""
    return chapter if of_class == "default" else f"{chapter}_{of_class}"
