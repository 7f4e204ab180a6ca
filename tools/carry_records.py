"""Carry recorded rows over a change of code: python -m tools.carry_records REVISION [--map FILE]

A stale row is kept if the pair still gives the GPU the same work as at REVISION, whose code was recorded. Compared are
`run` and the cost of each version of the row, and each library that was timed, wherever in the pair they stand. Equal
code gives equal work, after a map of new names has been applied to the old code (tools/old_tree.py). Where the code
differs, the work decides, at the row's arguments: every torch operation and every launch, with the machine code for the
record's architecture. If some of it cannot be seen without a GPU, the row stays stale. If the row was timed on the wall
clock, the code on the host must be equal, too.
"""

import ast
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common.cli import counts
from common.cli.counts import CountedPair
from common.engine.candidates import LIBRARY_KINDS
from common.isolation import worker
from common.pairs.pair import ROOT, Pair, chapters, class_of, discover
from common.pairs.source import definitions, source_hash, timed_code
from common.pairs.syntax import parse
from common.pairs.user_error import UserError
from common.program import Parser, finish, status_of
from common.record.files import RECORDED
from common.record.record_file import load_records, save_records
from common.record.result import PairResult, Record
from common.record.store import current_filter, merge_runs, stem
from common.xray.work import UNSEEN, works
from tools.old_tree import RenameMap, at_revision, old_pairs, read_map

ARCHITECTURE = "sm_90"  # of all recorded GPUs
Works = dict[tuple[Path, str], dict[str, list[str]]]  # (file, arguments) -> what its functions do (common.xray.work)
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
    said = {"baseline", *result.arms, *(row.variant for row in result.rows)}
    files = {version.label: version.path for version in pair.versions}
    found = {f"{label} run": Part("run", path, path) for label, path in files.items() if label in said}
    for label in said & files.keys():
        for path in having("cost", files[label], files["baseline"]):
            found[f"{label} cost"] = Part("cost", path, files[label])
    for label in [label for label in result.arms if label.split("/")[0] in LIBRARY_KINDS]:
        for path in having(name := label.replace("/", "_"), *files.values()):
            found[label] = Part(name, path, path)
    return dict(sorted(found.items()))


def having(name: str, *files: Path) -> list[Path]:
    """The first of these files that defines or imports a function, if there is one."""
    return [file for file in files if name in dict(definitions(parse(file)))][:1]


@dataclass(frozen=True)
class Move:
    """A stale result and the pair that it may belong to now, with all arguments of `inputs` then and now."""

    result: PairResult
    before: Pair
    after: Pair
    size: str
    then: dict[str, Any]
    now: dict[str, Any]

    def changed(self) -> list[tuple[str, Part | None, Part | None]]:
        """What has other code now than then, or is missing in one of them."""
        old, new = parts(self.before, self.result), parts(self.after, self.result)
        same = [key for key in old.keys() & new.keys() if self.then == self.now and old[key].code() == new[key].code()]
        return [(key, old.get(key), new.get(key)) for key in old | new if key not in same]

    def done(self) -> PairResult:
        """The result as one of the present pair."""
        hashes, sizes = [*self.result.carried, self.result.source_hash], self.after.sizes[self.size]
        named = replace(self.result, name=self.after.name, size=self.size, sizes=sizes)
        return replace(named, source_hash=source_hash(self.after), carried=hashes)


def move_of(result: PairResult, old: OldPairs, new: dict[str, Pair], names: RenameMap) -> Move:
    """The move of a stale result. Raises UserError if no present pair fits."""
    key = f"{result.chapter}/{result.name}"
    renamed = names.pairs.get(key, {})
    name, more = renamed.get("name", result.name), renamed.get("arguments", {})
    known = (result.source_hash, *result.carried)  # a row that was carried is that of each code before, too
    before, code = old.get(result.name, (None, ""))
    if before is None or code not in known:
        raise UserError("it is of another revision")
    if name not in new:
        raise UserError(f"there is no pair {name}")
    then = arguments_of(before, result.sizes)
    sizes = [size for size, given in new[name].sizes.items() if arguments_of(new[name], given) == then | more]
    if not sizes:
        raise UserError(f"{name} has no size of {then | more}")
    of_class = [size for size in sizes if class_of(size) == class_of(result.size)]
    size = result.size if result.size in sizes else (of_class or sizes)[0]
    labelled = with_labels(result, names.labels.get(key, {}))
    return Move(labelled, before, new[name], size, then, then | more)


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
    named = {argument.arg: ast.literal_eval(value) for argument, value in defaults.items()}
    return {name: value for name, value in {**named, **given}.items() if name != "device"}


def seen(moves: list[Move]) -> Works:
    """The work, then and now, of what has other code; each file in its own process."""
    wanted: dict[Path, tuple[set[str], dict[str, dict[str, Any]]]] = {}
    for move in moves:
        for _, *both in move.changed():
            for part, arguments in zip(both, (move.then, move.now), strict=True):
                if part:
                    names, sizes = wanted.setdefault(part.file, (set(), {}))
                    names.add(part.name)
                    sizes[repr(arguments)] = arguments
    found: Works = {}
    for path, (names, sizes) in wanted.items():
        try:
            done = worker.call(works, path, sorted(names), list(sizes.values()), ARCHITECTURE)
        except worker.ChildFailed as death:
            done = [{name: [f"{UNSEEN}: {death}"] for name in names} for _ in sizes]
        found |= {(path, key): work for key, work in zip(sizes, done, strict=True)}
    return found


def difference(move: Move, found: Works) -> str:
    """The first difference between the work then and now; empty if there is none."""
    for key, old, new in move.changed():
        if old is None or new is None:
            return f"{key} is {'new' if new else 'gone'}"
        before, after = found[old.file, repr(move.then)][old.name], found[new.file, repr(move.now)][new.name]
        for then, now in zip([*before, "the end"], [*after, "the end"], strict=False):
            if then != now:
                return f"{key}: {now:.150} instead of {then:.150}"
        if before[:1] and before[0].startswith(UNSEEN):
            return f"{key}: its code differs, and its work {before[0]}"
        if move.result.clock == "wall" and old.name != "cost" and old.code(kernels=False) != new.code(kernels=False):
            return f"{key}: its code on the host differs"
    return ""


def run(argv: list[str] | None) -> int:
    """Parse the arguments and carry rows over. Raises UserError."""
    parser = Parser("python -m tools.carry_records", description=str(__doc__).split("\n\n")[1])
    parser.add_argument("revision", help="git revision of the recorded code")
    parser.add_argument("--chapter", metavar="chN", default="ch*", help="only this chapter")
    parser.add_argument("--map", metavar="FILE", help="new names of files, functions, labels and pairs (TOML)")
    args = parser.parse_args(argv)
    if not (chosen := [path.name for path in chapters().values() if path.match(args.chapter)]):
        parser.error(f"--chapter {args.chapter}: there is none; chN is meant, as in ch3")
    names = read_map(args.map) if args.map else RenameMap()
    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        at_revision(args.revision, Path(folder))
        for chapter in chosen:
            old, new = old_pairs(Path(folder) / chapter, names), {pair.name: pair for pair in discover(ROOT / chapter)}
            carry_chapter(chapter, old, new, names)
            carry_counts(chapter, old, new, names)
    return 0


def carry_chapter(chapter: str, old: OldPairs, new: dict[str, Pair], names: RenameMap) -> None:
    """Print one line per stale result of a chapter; write the recorded files, if any result of them changes."""
    records = {path: load_records(path) for path in sorted(RECORDED.glob(f"*/{chapter}*.json"))}
    moves: dict[int, Move | str] = {}
    is_current = current_filter(list(new.values()))
    results = [(path, result) for path, runs in records.items() for run in runs for result in run.pairs]
    for _, result in [(path, result) for path, result in results if not is_current(result)]:
        try:
            moves[id(result)] = move_of(result, old, new, names)
        except UserError as error:
            moves[id(result)] = str(error)
    found, done = seen([move for move in moves.values() if isinstance(move, Move)]), dict[int, PairResult]()
    for path, result in results:
        if move := moves.get(id(result)):
            why = difference(move, found) if isinstance(move, Move) else move
            after = move.done() if isinstance(move, Move) and not why else result
            done |= {id(result): after} if not why else {}
            said = f"stale: {why}" if why else f"carried over as {after.name} {after.size}"
            print(f"{path.name} {result.name} {result.size}: {said}", flush=True)
    if done:
        parts = {
            path: [replace(run, pairs=[done.get(id(pair), pair) for pair in run.pairs]) for run in runs]
            for path, runs in records.items()
        }
        keep_by_class(parts, chapter)


def carry_counts(chapter: str, old: OldPairs, new: dict[str, Pair], names: RenameMap) -> None:
    """Counts of memory traffic are those of the present code if it is equal but for names that no count has."""

    def now(count: CountedPair) -> CountedPair:
        before, code = old.get(count.name, (None, ""))
        kernels = {kernel.name for version in count.versions if version.traffic for kernel in version.traffic.kernels}
        is_named = f"{chapter}/{count.name}" in names.labels or not kernels.isdisjoint(names.functions)
        if count.chapter != chapter or count.name not in new or before is None or code != count.source_hash or is_named:
            return count
        is_same = counted_code(before) == counted_code(new[count.name])
        return replace(count, source_hash=source_hash(new[count.name])) if is_same else count

    found: counts.Counts = counts.FORMAT.load(RECORDED / counts.FILE)
    if (pairs := [*map(now, found.pairs)]) != found.pairs:
        counts.save(replace(found, pairs=pairs), RECORDED / counts.FILE)


def counted_code(pair: Pair) -> dict[str, Any]:
    """What decides the counts of each version."""
    names = frozenset(["inputs", "setup", "run", "cost"])
    return {version.label: code_of(version.path, names) for version in pair.versions}


def keep_by_class(records: dict[Path, list[Record]], chapter: str) -> None:
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


if __name__ == "__main__":
    finish(lambda: status_of("carry", lambda: run(sys.argv[1:])))
