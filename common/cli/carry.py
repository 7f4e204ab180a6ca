"""Carry recorded rows over a change of names: python -m common.cli.carry REVISION [--renamed OLD=NEW[:argument=number]]

A row that is stale stays where a version of the pair still gives the GPU the same work: at the row's arguments, in
REVISION, whose code it is of, and now, every operation of torch's and every launch are equal, with the machine code of
its kernels for the record's architecture, and so is what is timed beside it. Of what cannot be seen without a GPU, and
of what is timed on the wall's clock, the code on the host has to be equal, too. What is not proven stays stale.

`--renamed fcgp_2d=fcgp:dimensions=2`: a pair has another name now, its sizes one argument more.
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

from common.isolation import process
from common.pairs.contract import Version
from common.pairs.one_line import OneLine
from common.pairs.pair import ROOT, Pair, chapters, discover
from common.pairs.sizes import class_of
from common.pairs.source import on_the_host, source_hash
from common.pairs.syntax import parse
from common.program import Parser, finish, status_of
from common.record.archive import current, stem
from common.record.files import RECORDED
from common.record.load import load_record, save_record
from common.record.result import PairResult, Record
from common.xray.work import UNSEEN, works

ARCHITECTURE = "sm_90"  # of all GPUs that are recorded
Renamed = dict[str, tuple[str, dict[str, Any]]]  # old name -> new name, further arguments
Works = dict[tuple[Path, str], dict[str, list[str]]]  # (file, arguments) -> what it does (common.xray.work)


@dataclass(frozen=True)
class Move:
    """A stale result, and what it would be of: a pair now, with all arguments of `inputs` then and now."""

    result: PairResult
    before: Pair
    after: Pair
    size: str
    then: dict[str, Any]
    now: dict[str, Any]

    def versions(self) -> list[tuple[Version, Version | None]]:
        """Each one then, and now; None where there is none of its label any more."""
        new = {version.label: version for version in self.after.versions}
        return [(version, new.get(version.label)) for version in self.before.versions]

    def done(self) -> PairResult:
        """The result as one of the pair that there is now."""
        hashes, sizes = [*self.result.carried, self.result.source_hash], self.after.sizes[self.size]
        named = replace(self.result, name=self.after.name, size=self.size, sizes=sizes)
        return replace(named, source_hash=source_hash(self.after), carried=hashes)


def move_of(result: PairResult, old: dict[str, Pair], new: dict[str, Pair], renamed: Renamed) -> Move:
    """Raises OneLine: there is nothing that the result could be of."""
    name, more = renamed.get(result.name, (result.name, {}))
    if result.name not in old or source_hash(old[result.name]) != result.source_hash:
        raise OneLine("it is of another revision")
    if name not in new:
        raise OneLine(f"there is no pair {name}")
    then = arguments_of(old[result.name], result.sizes)
    sizes = [size for size, given in new[name].sizes.items() if arguments_of(new[name], given) == then | more]
    if not sizes:
        raise OneLine(f"{name} has no size of {then | more}")
    of_class = [size for size in sizes if class_of(size) == class_of(result.size)]
    size = result.size if result.size in sizes else (of_class or sizes)[0]
    return Move(result, old[result.name], new[name], size, then, then | more)


def arguments_of(pair: Pair, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `inputs`, with its defaults."""
    functions = (node for node in parse(pair.baseline.path).body if isinstance(node, ast.FunctionDef))
    takes = next(node.args for node in functions if node.name == "inputs")
    defaults = dict(zip(reversed(takes.args), reversed(takes.defaults), strict=False))
    named = {argument.arg: ast.literal_eval(value) for argument, value in defaults.items()}
    return {name: value for name, value in {**named, **given}.items() if name != "device"}


def seen(moves: list[Move]) -> Works:
    """What all versions of these moves do, then and now; a process a version."""
    wanted: dict[Path, dict[str, dict[str, Any]]] = {}
    for move in moves:
        for old, new in move.versions():
            wanted.setdefault(old.path, {})[repr(move.then)] = move.then
            if new:
                wanted.setdefault(new.path, {})[repr(move.now)] = move.now
    found: Works = {}
    for path, arguments in wanted.items():
        try:
            done = process.call(works, path, list(arguments.values()), ARCHITECTURE)
        except process.Death as death:
            done = [{"run": [f"{UNSEEN}: {death}"]} for _ in arguments]
        found |= {(path, key): work for key, work in zip(arguments, done, strict=True)}
    return found


def difference(move: Move, found: Works) -> str:
    """What is done otherwise now; empty if nothing."""
    for old, new in move.versions():
        if new is None:
            return f"{old.label} is gone"
        before, after = found[old.path, repr(move.then)], found[new.path, repr(move.now)]
        if before.keys() != after.keys():
            return f"{new.label} has {', '.join(after)} instead of {', '.join(before)}"
        for name, lines in before.items():
            for then, now in zip([*lines, "the end"], [*after[name], "the end"], strict=False):
                if then != now:
                    return f"{new.label} {name}: {now:.150} instead of {then:.150}"
        unseen = any(lines[0].startswith(UNSEEN) for lines in before.values())
        if (unseen or move.result.clock == "wall") and on_the_host(old.path) != on_the_host(new.path):
            return f"{new.label}: its code on the host is another, and not all that it does is seen here"
    return ""


def at_revision(revision: str, folder: Path) -> None:
    """Put the repository as it was into a folder. Raises OneLine."""
    done = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise OneLine(f"{revision}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def run(argv: list[str] | None) -> int:
    """Raises OneLine."""
    parser = Parser("python -m common.cli.carry", description=str(__doc__).split("\n\n")[1])
    parser.add_argument("revision", help="of git: the code that was recorded")
    parser.add_argument("--chapter", metavar="chN", default="ch*", help="of one chapter only")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW[:argument=number]")
    args = parser.parse_args(argv)
    renamed: Renamed = {}
    for text in args.renamed:
        if not (found := re.fullmatch(r"(\w+)=(\w+)(?::(\w+)=(\d+))?", text)):
            parser.error(f"--renamed {text}: is no OLD=NEW or OLD=NEW:argument=number")
        renamed[found[1]] = found[2], {found[3]: int(found[4])} if found[3] else {}
    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        at_revision(args.revision, Path(folder))
        for chapter in (path.name for path in chapters().values() if path.match(args.chapter)):
            old, new = ({pair.name: pair for pair in discover(root / chapter)} for root in (Path(folder), ROOT))
            carry_chapter(chapter, old, new, renamed)
    return 0


def carry_chapter(chapter: str, old: dict[str, Pair], new: dict[str, Pair], renamed: Renamed) -> None:
    """All recorded files of a chapter, of which those are written in which something changes; a line a stale result."""
    records = {path: load_record(path) for path in sorted(RECORDED.glob(f"*/{chapter}*.json"))}
    moves: dict[int, Move | str] = {}
    is_current = current(list(new.values()))
    for result in [result for record in records.values() for result in record.pairs if not is_current(result)]:
        try:
            moves[id(result)] = move_of(result, old, new, renamed)
        except OneLine as error:
            moves[id(result)] = str(error)
    found = seen([move for move in moves.values() if isinstance(move, Move)])
    for path, record in records.items():
        pairs = []
        for result in record.pairs:
            move = moves.get(id(result), "")
            why = difference(move, found) if isinstance(move, Move) else move
            pairs.append(move.done() if isinstance(move, Move) and not why else result)
            if move:
                said = f"stale: {why}" if why else f"carried over as {pairs[-1].name} {pairs[-1].size}"
                print(f"{path.name} {result.name} {result.size}: {said}", flush=True)
        if pairs != record.pairs:
            keep_by_class(replace(record, pairs=pairs), path, chapter)


def keep_by_class(record: Record, path: Path, chapter: str) -> None:
    """A file for each class of sizes, named as `path` is: a result whose class is another now goes to another."""
    date = path.name[path.name.index(".") :]
    path.unlink()
    for of_class in dict.fromkeys(class_of(pair.size) for pair in record.pairs):
        pairs = [pair for pair in record.pairs if class_of(pair.size) == of_class]
        save_record(replace(record, pairs=pairs), path.with_name(f"{stem(chapter, of_class)}{date}"))


if __name__ == "__main__":
    finish(lambda: status_of("carry", lambda: run(sys.argv[1:])))
