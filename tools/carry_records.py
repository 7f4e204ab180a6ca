"""Keep recorded rows over a change that changes no work.

A stale row is kept if the pair still gives the GPU the same work as at REVISION, whose code was recorded. Compared are
`run` and the cost of each version of the row, and each library that was timed, wherever in the pair they stand. Equal
code gives equal work, after a map of new names has been applied to the old code (tools/old_tree.py). Where the code
differs, the work decides, at the row's arguments: every torch operation and every launch, with the machine code for the
record's architecture. If some of it cannot be seen without a GPU, the row stays stale. If the row was timed on the wall
clock, the code on the host must be equal, too.
"""

import ast
from argparse import Namespace
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common.cli import counts
from common.cli.arguments import chapter_folder
from common.cli.counts import CountedPair
from common.isolation import worker
from common.pairs.contract import LIBRARY_KINDS
from common.pairs.pair import Pair, chapters, class_of, discover
from common.pairs.source import source_hash
from common.pairs.syntax import parse
from common.record.files import RECORDED
from common.record.record_file import load_records, save_records
from common.record.result import PairResult, Record
from common.record.store import current_filter, merge_runs, stem
from tools.old_tree import RenameMap, extract_revision, old_pairs, read_map
from tools.timed_code import definitions, timed_code
from tools.work import UNSEEN, works

ARCHITECTURE = "sm_90"  # of all recorded GPUs
Works = dict[tuple[Path, str], dict[str, list[str]]]  # (file, arguments) -> what its functions do (tools.work)
OldPairs = dict[str, tuple[Pair, str]]  # name -> the pair with the names of today, and its hash before that
code_of = cache(timed_code)  # no file changes meanwhile


@dataclass(frozen=True)
class Part:
    """A function whose work a row holds, in its file. `version`: the file with its inputs."""

    name: str
    file: Path
    version: Path

    def code(self, kernels: bool = True) -> list[Any]:
        """What decides its work."""
        names = frozenset([self.name, *["setup"] * (self.name == "run")])
        return [code_of(self.file, names, kernels), code_of(self.version, frozenset(["inputs"]), kernels)]


def parts(pair: Pair, result: PairResult) -> dict[str, Part]:
    """Of each version of which a result speaks `run` and the cost; and each library of which it has times.

    What a version's file lacks is the baseline's.
    """
    labels = {"baseline", *result.arms, *(row.variant for row in result.rows)}
    files = {version.label: version.path for version in pair.versions}
    by_key = {f"{label} run": Part("run", path, path) for label, path in files.items() if label in labels}
    for label in labels & files.keys():
        for path in defining_file("cost", files[label], files["baseline"]):
            by_key[f"{label} cost"] = Part("cost", path, files[label])
    for label in [label for label in result.arms if label.split("/")[0] in LIBRARY_KINDS]:
        for path in defining_file(name := label.replace("/", "_"), *files.values()):
            by_key[label] = Part(name, path, path)
    return dict(sorted(by_key.items()))


def defining_file(name: str, *files: Path) -> list[Path]:
    """The first of these files that defines or imports a function, if there is one."""
    return [file for file in files if name in dict(definitions(parse(file)))][:1]


@dataclass(frozen=True)
class Move:
    """A stale result and the pair that it may belong to now, with all arguments of `inputs` then and now."""

    result: PairResult
    old_pair: Pair
    new_pair: Pair
    size: str
    old_arguments: dict[str, Any]
    new_arguments: dict[str, Any]

    def changed(self) -> list[tuple[str, Part | None, Part | None]]:
        """What has other code now than then, or is missing in one of them."""
        old, new = parts(self.old_pair, self.result), parts(self.new_pair, self.result)
        both = old.keys() & new.keys() if self.old_arguments == self.new_arguments else set()
        same = [key for key in both if old[key].code() == new[key].code()]
        return [(key, old.get(key), new.get(key)) for key in old | new if key not in same]

    def carried_result(self) -> PairResult:
        """The result as one of the present pair."""
        hashes, sizes = [*self.result.carried, self.result.source_hash], self.new_pair.sizes[self.size]
        moved = replace(self.result, name=self.new_pair.name, size=self.size, sizes=sizes)
        return replace(moved, source_hash=source_hash(self.new_pair), carried=hashes)


def move_of(result: PairResult, old: OldPairs, new: dict[str, Pair], names: RenameMap) -> Move | str:
    """The move of a stale result, or why no present pair fits."""
    key = f"{result.chapter}/{result.name}"
    renamed = names.pairs.get(key, {})
    name, more = renamed.get("name", result.name), renamed.get("arguments", {})
    hashes = (result.source_hash, *result.carried)  # a row that was carried is that of each code before, too
    old_pair, code = old.get(result.name, (None, ""))
    if old_pair is None or code not in hashes:
        return "it is of another revision"
    if name not in new:
        return f"there is no pair {name}"
    old_arguments = arguments_of(old_pair, result.sizes)
    by_size = {size: arguments_of(new[name], given) for size, given in new[name].sizes.items()}
    known, defaults = {key for given in by_size.values() for key in given}, arguments_of(old_pair, {})
    arguments = {  # one that there is no more had its default
        key: value
        for key, value in (old_arguments | more).items()
        if key in known or key not in defaults or value != defaults[key]
    }
    sizes = [size for size, given in by_size.items() if given == arguments]
    if not sizes:
        return f"{name} has no size of {arguments}"
    of_class = [size for size in sizes if class_of(size) == class_of(result.size)]
    size = result.size if result.size in sizes else (of_class or sizes)[0]
    labelled = with_labels(result, names.labels.get(key, {}))
    return Move(labelled, old_pair, new[name], size, old_arguments, arguments)


def with_labels(result: PairResult, labels: dict[str, str]) -> PairResult:
    """The result with the new labels of its versions."""
    rows = [
        replace(row, variant=labels.get(row.variant, row.variant), versus=labels.get(row.versus, row.versus))
        for row in result.rows
    ]
    arms = {labels.get(label, label): arm for label, arm in result.arms.items()}
    orders = [[[labels.get(label, label) for label in order] for order in block] for block in result.orders]
    return replace(result, rows=rows, arms=arms, orders=orders)


def arguments_of(pair: Pair, given: dict[str, Any]) -> dict[str, Any]:
    """All arguments of `inputs`: the given ones, and the defaults of the others."""
    functions = (node for node in parse(pair.baseline.path).body if isinstance(node, ast.FunctionDef))
    takes = next(node.args for node in functions if node.name == "inputs")
    defaults = dict(zip(reversed(takes.args), reversed(takes.defaults), strict=False))
    default_values = {argument.arg: ast.literal_eval(value) for argument, value in defaults.items()}
    return {name: value for name, value in {**default_values, **given}.items() if name != "device"}


def find_work(moves: list[Move]) -> Works:
    """The work, then and now, of what has other code; each file in its own process."""
    requests: dict[Path, tuple[set[str], dict[str, dict[str, Any]]]] = {}
    for move in moves:
        for _, *part_pair in move.changed():
            for part, arguments in zip(part_pair, (move.old_arguments, move.new_arguments), strict=True):
                if part:
                    names, sizes = requests.setdefault(part.file, (set(), {}))
                    names.add(part.name)
                    sizes[repr(arguments)] = arguments
    work_of: Works = {}
    for path, (names, sizes) in requests.items():
        try:
            work_by_size = worker.call(works, path, sorted(names), list(sizes.values()), ARCHITECTURE)
        except worker.ChildFailed as death:
            work_by_size = [{name: [f"{UNSEEN}: {death}"] for name in names} for _ in sizes]
        work_of |= {(path, key): work for key, work in zip(sizes, work_by_size, strict=True)}
    return work_of


def differences(move: Move, work_of: Works) -> dict[str, str]:
    """Version or library -> the first difference between its work then and now."""
    reasons: dict[str, str] = {}
    for key, old, new in move.changed():
        if reason := difference(move, key, old, new, work_of):
            reasons.setdefault(key.split(" ")[0], reason)
    return reasons


def difference(move: Move, key: str, old: Part | None, new: Part | None, work_of: Works) -> str:
    """The first difference in the work of a part; empty if there is none."""
    if old is None or new is None:
        return f"{key} is {'new' if new else 'gone'}"
    old_work = work_of[old.file, repr(move.old_arguments)][old.name]
    new_work = work_of[new.file, repr(move.new_arguments)][new.name]
    for old_step, new_step in zip([*old_work, "the end"], [*new_work, "the end"], strict=False):
        if old_step != new_step:
            return f"{key}: {new_step:.150} instead of {old_step:.150}"
    if old_work[:1] and old_work[0].startswith(UNSEEN):
        return f"{key}: its code differs, and its work {old_work[0]}"
    if move.result.clock == "wall" and old.name != "cost" and old.code(kernels=False) != new.code(kernels=False):
        return f"{key}: its code on the host differs"
    return ""


def without(result: PairResult, labels: Collection[str]) -> PairResult:
    """The result without some versions and libraries: the others were timed beside them, in the same rounds."""
    rows = [
        replace(row, vs_library={label: value for label, value in row.vs_library.items() if label not in labels})
        for row in result.rows
        if row.variant not in labels and row.versus not in labels
    ]
    arms = {label: arm for label, arm in result.arms.items() if label not in labels}
    orders = [[[label for label in order if label not in labels] for order in block] for block in result.orders]
    return replace(result, rows=rows, arms=arms, orders=orders)


def run(args: Namespace) -> int:
    """Carry rows over. Raises UserError."""
    folders = [chapter_folder(args.chapter)] if args.chapter else chapters().values()
    names = read_map(args.map) if args.map else RenameMap()
    with TemporaryDirectory(prefix="speed-of-light-") as old_root:
        extract_revision(args.revision, Path(old_root))
        for folder in folders:
            old, new = old_pairs(Path(old_root) / folder.name, names), {pair.name: pair for pair in discover(folder)}
            carry_chapter(folder.name, old, new, names)
            carry_counts(folder.name, old, new, names)
    return 0


def carry_chapter(chapter: str, old: OldPairs, new: dict[str, Pair], names: RenameMap) -> None:
    """Print one line per stale result of a chapter; write the recorded files, if any result of them changes."""
    records = {path: load_records(path) for path in sorted(RECORDED.glob(f"*/{chapter}*.json"))}
    results = [(path, result) for path, runs in records.items() for run in runs for result in run.pairs]
    is_current = current_filter([*new.values()])
    stale = [(path, result) for path, result in results if not is_current(result)]
    moves = [move_of(result, old, new, names) for _, result in stale]
    work_of, carried = find_work([move for move in moves if isinstance(move, Move)]), dict[int, PairResult]()
    for (path, result), move in zip(stale, moves, strict=True):
        reasons = {"": move} if isinstance(move, str) else differences(move, work_of)
        kept = None if isinstance(move, str) or "baseline" in reasons else without(move.result, reasons)
        if isinstance(move, Move) and kept and kept.rows:
            new_result = carried[id(result)] = replace(move, result=kept).carried_result()
            outcome = f"carried over as {new_result.name} {new_result.size}"
            outcome += f", without {', '.join(reasons)} ({next(iter(reasons.values()))})" if reasons else ""
        else:
            outcome = f"stale: {reasons.get('baseline') or next(iter(reasons.values()))}"
        print(f"{path.name} {result.name} {result.size}: {outcome}", flush=True)
    if carried:
        parts = {
            path: [replace(run, pairs=[carried.get(id(pair), pair) for pair in run.pairs]) for run in runs]
            for path, runs in records.items()
        }
        save_by_class(parts, chapter)


def carry_counts(chapter: str, old: OldPairs, new: dict[str, Pair], names: RenameMap) -> None:
    """Counts of memory traffic are those of the present code if it is equal but for names that no count has."""

    def with_current_hash(count: CountedPair) -> CountedPair:
        old_pair, code = old.get(count.name, (None, ""))
        kernels = {kernel.name for version in count.versions if version.traffic for kernel in version.traffic.kernels}
        is_named = f"{chapter}/{count.name}" in names.labels or not kernels.isdisjoint(names.functions)
        is_other = count.chapter != chapter or count.name not in new or code != count.source_hash
        if old_pair is None or is_other or is_named:
            return count
        is_same = code_by_version(old_pair) == code_by_version(new[count.name])
        return replace(count, source_hash=source_hash(new[count.name])) if is_same else count

    recorded: counts.Counts = counts.FORMAT.load(RECORDED / counts.FILE)
    if (pairs := [*map(with_current_hash, recorded.pairs)]) != recorded.pairs:
        counts.save(replace(recorded, pairs=pairs), RECORDED / counts.FILE)


def code_by_version(pair: Pair) -> dict[str, Any]:
    """What decides the counts of each version."""
    names = frozenset(["inputs", "setup", "run", "cost"])
    return {version.label: code_of(version.path, names) for version in pair.versions}


def save_by_class(records: dict[Path, list[Record]], chapter: str) -> None:
    """Write a file for each class of sizes: a result whose class has changed moves to another file."""
    files: dict[Path, list[Record]] = {}
    for path, run in [(path, run) for path, runs in records.items() for run in runs]:
        for of_class in dict.fromkeys(class_of(pair.size) for pair in run.pairs):
            pairs = [pair for pair in run.pairs if class_of(pair.size) == of_class]
            files.setdefault(path.with_name(f"{stem(chapter, of_class)}.json"), []).append(replace(run, pairs=pairs))
    for path, runs in files.items():
        save_records(merge_runs(runs), path)
    for path in records.keys() - files.keys():
        path.unlink()
