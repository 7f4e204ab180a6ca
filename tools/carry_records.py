"""Carry recorded rows over a change of names: python -m tools.carry_records REVISION [--renamed OLD=NEW[:name=number]]

A stale row is kept if the pair still gives the GPU the same work. The work is compared between REVISION, whose code was
recorded, and now, at the row's arguments: every torch operation and every launch, the machine code of the kernels for
the record's architecture, and what is timed beside them. If some work cannot be seen without a GPU, or if the row was
timed on the wall clock, the code on the host must be equal, too. A row without this proof stays stale.

`--renamed fcgp_2d=fcgp:dimensions=2`: the pair has another name now, and its sizes have one more argument.
"""

import ast
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common.isolation import worker
from common.pairs.contract import Version
from common.pairs.pair import ROOT, Pair, chapters, discover
from common.pairs.sizes import class_of
from common.pairs.source import host_code, source_hash
from common.pairs.syntax import parse
from common.pairs.user_error import UserError
from common.program import Parser, finish, status_of
from common.record.files import RECORDED
from common.record.load import load_records, save_records
from common.record.result import PairResult, Record
from common.record.store import current, merged, stem
from common.xray.work import UNSEEN, works

ARCHITECTURE = "sm_90"  # of all recorded GPUs
Renamed = dict[str, tuple[str, dict[str, Any]]]  # old name -> new name, further arguments
Works = dict[tuple[Path, str], dict[str, list[str]]]  # (file, arguments) -> what it does (common.xray.work)


@dataclass(frozen=True)
class Move:
    """A stale result and the pair that it may belong to now, with all arguments of `inputs` then and now."""

    result: PairResult
    before: Pair
    after: Pair
    size: str
    then: dict[str, Any]
    now: dict[str, Any]

    def versions(self) -> list[tuple[Version, Version | None]]:
        """Each version of which the result speaks, then and now; None if the label no longer exists."""
        new = {version.label: version for version in self.after.versions}
        said = {"baseline", *self.result.arms, *(row.variant for row in self.result.rows)}
        return [(version, new.get(version.label)) for version in self.before.versions if version.label in said]

    def done(self) -> PairResult:
        """The result as one of the present pair."""
        hashes, sizes = [*self.result.carried, self.result.source_hash], self.after.sizes[self.size]
        named = replace(self.result, name=self.after.name, size=self.size, sizes=sizes)
        return replace(named, source_hash=source_hash(self.after), carried=hashes)


def move_of(result: PairResult, old: dict[str, Pair], new: dict[str, Pair], renamed: Renamed) -> Move:
    """The move of a stale result. Raises UserError if no present pair fits."""
    name, more = renamed.get(result.name, (result.name, {}))
    known = (result.source_hash, *result.carried)  # a row that was carried is that of each code before, too
    if result.name not in old or source_hash(old[result.name]) not in known:
        raise UserError("it is of another revision")
    if name not in new:
        raise UserError(f"there is no pair {name}")
    then = arguments_of(old[result.name], result.sizes)
    sizes = [size for size, given in new[name].sizes.items() if arguments_of(new[name], given) == then | more]
    if not sizes:
        raise UserError(f"{name} has no size of {then | more}")
    of_class = [size for size in sizes if class_of(size) == class_of(result.size)]
    size = result.size if result.size in sizes else (of_class or sizes)[0]
    return Move(result, old[result.name], new[name], size, then, then | more)


def arguments_of(pair: Pair, given: dict[str, Any]) -> dict[str, Any]:
    """All arguments of `inputs`: the given ones, and the defaults of the others."""
    functions = (node for node in parse(pair.baseline.path).body if isinstance(node, ast.FunctionDef))
    takes = next(node.args for node in functions if node.name == "inputs")
    defaults = dict(zip(reversed(takes.args), reversed(takes.defaults), strict=False))
    named = {argument.arg: ast.literal_eval(value) for argument, value in defaults.items()}
    return {name: value for name, value in {**named, **given}.items() if name != "device"}


def seen(moves: list[Move]) -> Works:
    """The work of all versions in these moves, then and now; each version in its own process."""
    wanted: dict[Path, dict[str, dict[str, Any]]] = {}
    for move in moves:
        for old, new in move.versions():
            wanted.setdefault(old.path, {})[repr(move.then)] = move.then
            if new:
                wanted.setdefault(new.path, {})[repr(move.now)] = move.now
    found: Works = {}
    for path, arguments in wanted.items():
        try:
            done = worker.call(works, path, list(arguments.values()), ARCHITECTURE)
        except worker.ChildFailed as death:
            done = [{"run": [f"{UNSEEN}: {death}"]} for _ in arguments]
        found |= {(path, key): work for key, work in zip(arguments, done, strict=True)}
    return found


def difference(move: Move, found: Works) -> str:
    """The first difference between the work then and now; empty if there is none."""
    for old, new in move.versions():
        if new is None:
            return f"{old.label} is gone"
        before, after = found[old.path, repr(move.then)], found[new.path, repr(move.now)]
        if before.keys() - after.keys():  # of a library that was added since, the row says nothing
            return f"{new.label} has {', '.join(after)} instead of {', '.join(before)}"
        for name, lines in before.items():
            for then, now in zip([*lines, "the end"], [*after[name], "the end"], strict=False):
                if then != now:
                    return f"{new.label} {name}: {now:.150} instead of {then:.150}"
        unseen = any(lines[0].startswith(UNSEEN) for lines in before.values())
        if (unseen or move.result.clock == "wall") and host_code(old.path) != host_code(new.path):
            return f"{new.label}: its code on the host differs, and a part of its work cannot be seen here"
    return ""


def at_revision(revision: str, folder: Path) -> None:
    """Write the repository's files at a revision into a folder. Raises UserError."""
    done = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise UserError(f"{revision}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def run(argv: list[str] | None) -> int:
    """Parse the arguments and carry rows over. Raises UserError."""
    parser = Parser("python -m tools.carry_records", description=str(__doc__).split("\n\n")[1])
    parser.add_argument("revision", help="git revision of the recorded code")
    parser.add_argument("--chapter", metavar="chN", default="ch*", help="only this chapter")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW[:argument=number]")
    args = parser.parse_args(argv)
    if not (chosen := [path.name for path in chapters().values() if path.match(args.chapter)]):
        parser.error(f"--chapter {args.chapter}: there is none; chN is meant, as in ch3")
    renamed: Renamed = {}
    for text in args.renamed:
        if not (found := re.fullmatch(r"(\w+)=(\w+)(?::(\w+)=(\d+))?", text)):
            parser.error(f"--renamed {text}: must be OLD=NEW or OLD=NEW:argument=number")
        renamed[found[1]] = found[2], {found[3]: int(found[4])} if found[3] else {}
    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        at_revision(args.revision, Path(folder))
        for chapter in chosen:
            old, new = ({pair.name: pair for pair in discover(root / chapter)} for root in (Path(folder), ROOT))
            carry_chapter(chapter, old, new, renamed)
    return 0


def carry_chapter(chapter: str, old: dict[str, Pair], new: dict[str, Pair], renamed: Renamed) -> None:
    """Print one line per stale result of a chapter; write the recorded files, if any result of them changes."""
    records = {path: load_records(path) for path in sorted(RECORDED.glob(f"*/{chapter}*.json"))}
    moves: dict[int, Move | str] = {}
    is_current = current(list(new.values()))
    results = [(path, result) for path, runs in records.items() for run in runs for result in run.pairs]
    for _, result in [(path, result) for path, result in results if not is_current(result)]:
        try:
            moves[id(result)] = move_of(result, old, new, renamed)
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


def keep_by_class(records: dict[Path, list[Record]], chapter: str) -> None:
    """Write a file for each class of sizes: a result whose class has changed moves to another file."""
    files: dict[Path, list[Record]] = {}
    for path, run in [(path, run) for path, runs in records.items() for run in runs]:
        for of_class in dict.fromkeys(class_of(pair.size) for pair in run.pairs):
            pairs = [pair for pair in run.pairs if class_of(pair.size) == of_class]
            files.setdefault(path.with_name(f"{stem(chapter, of_class)}.json"), []).append(replace(run, pairs=pairs))
    for path, runs in files.items():
        save_records(merged(runs), path)
    for path in records.keys() - files.keys():
        path.unlink()


if __name__ == "__main__":
    finish(lambda: status_of("carry", lambda: run(sys.argv[1:])))
