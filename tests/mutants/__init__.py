"""Wrong versions of every lesson, each as a small change of the optimized file: what `--check` must not let pass.

    python -m mutants                 every pair that runs here, results written to results.json (make mutants)
    python -m mutants ch3 softmax     of one chapter, or of one pair

Run from tests/. A result names the hash of what was judged: where the pair or its mutant changes, it is stale. Who
changes the checks, or a STRESS, judges all anew.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from common.engine.runner import run_pairs
from common.pairs.pair import ROOT, Pair, discover
from common.pairs.source import source_hash

RESULTS = Path(__file__).with_name("results.json")
REJECTED = ("invalid", "crashed")


@dataclass(frozen=True)
class Mutant:
    """A version in which `old` is `new`, wherever it stands. `of`: the variant's suffix.

    `file`: of the chapter's helpers, where the change is made in one of them. `passes`: why it is known to pass.
    `on_a_gpu`: why it is known to pass there, though not in Triton's interpreter.
    """

    what: str
    old: str
    new: str
    of: str = ""
    file: str = ""
    passes: str = ""
    on_a_gpu: str = ""

    def changed(self, path: Path) -> str:
        """The text of a file with the change. Raises ValueError."""
        text = path.read_text(encoding="utf-8")
        if self.old not in text:
            raise ValueError(f"{path.name}, {self.what}: there is no {self.old!r} in it")
        return text.replace(self.old, self.new)


def mutants() -> dict[tuple[str, str], list[Mutant]]:
    """(chapter, pair) -> its wrong versions."""
    chapters = [path.stem for path in sorted(Path(__file__).parent.glob("ch[0-9]*.py"))]
    return {
        (chapter, name): found
        for chapter in chapters
        for name, found in import_module(f"mutants.{chapter}").MUTANTS.items()
    }


def judge(chapter: str, name: str, wrong: list[Mutant], device: str) -> dict[str, dict[str, str]]:
    """What the harness says of a pair's mutants, by what they are: those of the pair's own files in one run.

    One that dies takes the others with it: they are judged again, each alone.
    """
    found = _judge(chapter, name, [mutant for mutant in wrong if not mutant.file], device)
    for mutant in wrong:
        if mutant.file or found[mutant.what]["verdict"] == "crashed":
            found |= _judge(chapter, name, [mutant], device)
    return found


def _judge(chapter: str, name: str, wrong: list[Mutant], device: str) -> dict[str, dict[str, str]]:
    if not wrong:
        return {}
    with TemporaryDirectory(prefix="mutants-") as folder:
        record = run_pairs([_written(chapter, name, wrong, Path(folder))], device=device, check_only=True)
    if record.environment["interrupted"]:
        raise KeyboardInterrupt
    rows = {row.variant: row for row in record.pairs[0].rows}
    return {
        mutant.what: {"verdict": row.verdict, "reason": row.reason.replace(folder, "")}
        for mutant, row in zip(wrong, (rows[f"optimized/{number}"] for number in range(len(wrong))), strict=True)
    }


def _written(chapter: str, name: str, wrong: list[Mutant], folder: Path) -> Pair:
    """The pair with its mutants in place of its variants, `optimized/0`, `optimized/1`, ..., in a folder."""
    (pair,) = discover(ROOT / chapter, name)
    paths = {version.label: version.path for version in pair.versions}
    no_pairs = shutil.ignore_patterns("baseline_*", "optimized_*", "__pycache__")
    shutil.copytree(ROOT / chapter, folder, dirs_exist_ok=True, ignore=no_pairs)
    shutil.copy(paths["baseline"], folder)
    for number, mutant in enumerate(wrong):
        path = paths[f"optimized/{mutant.of}".rstrip("/")]
        text = path.read_text(encoding="utf-8") if mutant.file else mutant.changed(path)
        if mutant.file:
            (folder / mutant.file).write_text(mutant.changed(folder / mutant.file), encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.startswith("VERSUS")]  # a rung that is not here
        (folder / f"optimized_{name}_{number}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (found,) = discover(folder, name)
    return found


def hash_of(chapter: str, name: str, mutant: Mutant) -> str:
    """Of the pair as it is, and of the change."""
    (pair,) = discover(ROOT / chapter, name)
    text = " ".join([source_hash(pair), mutant.of, mutant.file, mutant.old, mutant.new])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def results() -> dict[str, dict[str, str]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
