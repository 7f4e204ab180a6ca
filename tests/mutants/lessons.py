"""Wrong versions of every lesson, each as a small change of the optimized file: what `--check` must not let pass."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from samples import reason_of

from common.engine.runner import run_pairs
from common.pairs.pair import ROOT, TUNED, Pair, discover
from common.pairs.source import source_hash
from common.pairs.syntax import with_helpers
from common.record.outcome import FAILED, Verdict
from mutants.edits import edited
from mutants.results import Group, Judgement, Wrong, digest


@dataclass(frozen=True)
class Mutant:
    """A version in which `old` is `new`, and so in all (old, new) of `also`. `of`: the variant's suffix.

    `file`: of the chapter's helpers, where the change is made in one of them. `passes`, `on_a_gpu`: as in Wrong.
    """

    what: str
    old: str
    new: str
    of: str = ""
    file: str = ""
    passes: str = ""
    on_a_gpu: str = ""
    also: tuple[tuple[str, str], ...] = ()

    def changed(self, path: Path) -> str:
        """The text of a file with the change. Raises ValueError."""
        edits = [(self.old, self.new), *self.also]
        return edited(path.read_text(encoding="utf-8"), edits, f"{path.name}, {self.what}")

    def wrong(self, source: str) -> Wrong:
        """`source`: the hash of its pair."""
        change = digest(source, self.of, self.file, self.old, self.new, *self.also)
        return Wrong(change, passes=self.passes, on_a_gpu=self.on_a_gpu)


def mutants() -> dict[tuple[str, str], list[Mutant]]:
    """(chapter, pair) -> its wrong versions."""
    chapters = [path.stem for path in sorted(Path(__file__).parent.glob("ch[0-9]*.py"))]
    return {
        (chapter, name): found
        for chapter in chapters
        for name, found in import_module(f"mutants.{chapter}").MUTANTS.items()
    }


def groups() -> Iterator[Group]:
    for (chapter, name), versions in mutants().items():
        (pair,) = discover(ROOT / chapter, name)
        source = source_hash(pair)
        wrong = {mutant.what: mutant.wrong(source) for mutant in versions}
        yield Group(f"{chapter} {name}", wrong, partial(judge, chapter, name))


def judge(chapter: str, name: str, names: list[str], device: str) -> Iterator[Judgement]:
    """What the harness says of a pair's mutants, but for those that cannot run here: most of them in one run.

    One that crashes takes the others with it: it is judged again, alone. So is one of a helper's file. Those of `tuned`
    have sizes of their own; one that passes is judged again, alone, since only then it is the pair's `tuned`.
    """
    wrong = [mutant for mutant in mutants()[chapter, name] if mutant.what in names]
    in_versions = [mutant for mutant in wrong if not mutant.file]
    rows = _rows(chapter, name, [mutant for mutant in in_versions if mutant.of != "tuned"], device)
    rows |= _rows(chapter, name, [mutant for mutant in in_versions if mutant.of == "tuned"], device)
    for mutant in wrong:
        verdict = rows.get(mutant.what, (Verdict.CRASHED,))[0]
        if verdict == Verdict.CRASHED or (mutant.of == "tuned" and verdict not in FAILED):
            rows |= _rows(chapter, name, [mutant], device)
        verdict, reason = rows[mutant.what]
        if verdict != Verdict.SKIPPED:
            yield mutant.what, verdict in FAILED, f"{verdict}: {reason}"


def _rows(chapter: str, name: str, wrong: list[Mutant], device: str) -> dict[str, tuple[Verdict, str]]:
    """Verdict and reason of each."""
    if not wrong:
        return {}
    with TemporaryDirectory(prefix="mutants-") as folder:
        record = run_pairs([_written(chapter, name, wrong, Path(folder))], device=device, check_only=True)
    if record.environment["interrupted"]:
        raise KeyboardInterrupt
    rows = {row.variant: row for row in record.pairs[0].rows}
    return {
        mutant.what: (rows[label].verdict, reason_of(rows[label]).replace(folder, ""))
        for label, mutant in zip(_labels(wrong), wrong, strict=True)
    }


def _labels(wrong: list[Mutant]) -> list[str]:
    """What mutants are called in place of a pair's variants."""
    if [mutant.of for mutant in wrong] == ["tuned"]:
        return [TUNED]
    return [f"optimized/{number}" for number, _ in enumerate(wrong)]


def _written(chapter: str, name: str, wrong: list[Mutant], folder: Path) -> Pair:
    """The pair with its mutants in place of its variants, in a folder."""
    (pair,) = discover(ROOT / chapter, name)
    paths = {version.label: version.path for version in pair.versions}
    no_pairs = shutil.ignore_patterns("baseline_*", "optimized_*", "__pycache__")
    shutil.copytree(ROOT / chapter, folder, dirs_exist_ok=True, ignore=no_pairs)
    text = paths["baseline"].read_text(encoding="utf-8")
    if len(wrong) > 1 and {mutant.of for mutant in wrong} == {"tuned"}:  # with other labels they run at all sizes
        text = text.replace('"check/tuned/', '"check/tuned ')
    (folder / paths["baseline"].name).write_text(text, encoding="utf-8")
    others = {path for version in pair.variants for path in with_helpers(version.path)} - {*paths.values()}
    for path in others:  # versions of other pairs that are built on; helpers are there
        if path.name.startswith("optimized_"):
            shutil.copy(path, folder)
    for label, mutant in zip(_labels(wrong), wrong, strict=True):
        path = paths[f"optimized/{mutant.of}".rstrip("/")]
        text = path.read_text(encoding="utf-8") if mutant.file else mutant.changed(path)
        if mutant.file:
            (folder / mutant.file).write_text(mutant.changed(folder / mutant.file), encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("VERSUS")]  # a rung that is not here
        (folder / f"optimized_{name}_{label.split('/')[1]}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (found,) = discover(folder, name)
    return found
