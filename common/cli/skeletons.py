"""A new pair, exercise or chapter: files to begin with, and what is still to be done, each as the step to take."""

import re
from collections.abc import Iterator
from pathlib import Path

from common.learn.exercise import EXERCISES, exercises, hides
from common.pairs.pair import ROOT
from common.pairs.user_error import UserError
from common.record.files import make_folder, write_text

GUIDE = "CONTRIBUTING.md"  # has the pair to copy
BLANK = "FILL IN"  # in what is written here
MODEL = "ch1/coalesce"  # the exercise to copy
BLOCK = re.compile(r"^`(baseline|optimized)_(\w+)\.py`\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
CHAPTER = re.compile(r"ch(?:0|[1-9][0-9]*)")
ALMOST = re.compile(r"(?:ch|chap|chapter)?[ _-]*([0-9]+)", re.IGNORECASE)  # chapter8, ch08
EXERCISE = re.compile(rf"{CHAPTER.pattern}/{NAME.pattern}")
TEMPLATES = ("README.md", "lessons.toml", "answers.toml")  # of a chapter, in templates/


def new_pair(place: str, name: str) -> int:
    """Write a pair to begin with, and the chapter's files where `place` is a new chapter. Raises UserError."""
    folder = Path(place)
    if not place:
        raise UserError("a pair needs a folder: --new DIR NAME")
    texts = {folder / f"{kind}_{name}.py": code for kind, code in _pair(name)}
    is_in_course = folder.absolute().parent == ROOT
    is_chapter = is_in_course and CHAPTER.fullmatch(folder.name)
    if is_in_course and not is_chapter and (almost := ALMOST.fullmatch(folder.name)):
        raise UserError(f"a chapter's folder is called chN: --new ch{int(almost[1])} {name}")
    if is_chapter and not folder.exists():
        from common.show.pages import page  # a slow import

        values = {"number": folder.name.removeprefix("ch"), "name": name}
        texts |= {folder / file: page(f"common/cli/templates/{file}.jinja", **values) for file in TEMPLATES}
        compare = (ROOT / "ch1/compare.py").read_text(encoding="utf-8")
        texts[folder / "compare.py"] = compare.replace("ch1", folder.name)
    _require_free(folder, name, list(texts))
    write_new(texts)
    option = f"--chapter {folder.name.removeprefix('ch')}" if is_chapter else f"--path {folder}"
    print(f"next: change both versions, then `python benchmark.py {option} --only {name} --check`")
    if is_chapter:
        for step in [*missing_steps(folder.name), "`make test` names these again, and what the pair still needs"]:
            print(f"then: {step}")
    return 0


def new_exercise(exercise_id: str) -> int:
    """Write an exercise to begin with, the last one of its chapter. Raises UserError."""
    if not EXERCISE.fullmatch(exercise_id):
        raise UserError(f"{exercise_id!r} is no name for an exercise: use one such as {MODEL}")
    if problem := hides(exercise_id):
        raise UserError(f"{exercise_id!r}: {problem}")
    chapter = exercise_id.split("/")[0]
    if not (ROOT / chapter).is_dir() and chapter != "ch0":
        raise UserError(f"there is no chapter {chapter}: `benchmark.py --new {chapter} NAME` begins one")
    order = 1 + max((exercise.order for exercise in exercises() if exercise.chapter == chapter), default=0)
    texts = {}
    for name in ("exercise.toml", "start.py", "solution.py"):
        text = (EXERCISES / MODEL / name).read_text(encoding="utf-8")
        text = re.sub(r"^title = .*", f'title = "{exercise_id}: a title of one line"', text, flags=re.MULTILINE)
        texts[EXERCISES / exercise_id / name] = re.sub(r"^order = .*", f"order = {order}", text, flags=re.MULTILINE)
    write_new(texts)
    print("next: change all three (exercises/README.md says how)")
    print(f"then: `python -m tools solutions {exercise_id}` grades the solution")
    print(f"then: `cd tests; ../.venv/bin/python -m mutants {exercise_id}` judges its wrong answers")
    print(f'then: show it in notebooks/{chapter}_*.ipynb, with a cell `nb.learn.show("{exercise_id}")`')
    return 0


def write_new(texts: dict[Path, str]) -> None:
    """Write files that are not there yet, and print their paths. Raises UserError before the first is written."""
    for path in texts:
        if path.exists():
            raise UserError(f"{path} exists: nothing is written")
    for path, text in texts.items():
        make_folder(path.parent)
        write_text(path, text)
        print(f"wrote {path}")


def missing_steps(chapter: str) -> list[str]:
    """What a chapter of the course still needs."""
    course = ROOT / "README.md"
    has = {
        "copy compare.py from another chapter": _has(chapter, "compare.py"),
        f"fill in {chapter}/README.md: objectives, pairs in reading order, pitfalls": _has(chapter, "README.md"),
        f"fill in {chapter}/lessons.toml: each pair in one sentence": _has(chapter, "lessons.toml"),
        f"answer the docstrings' questions in {chapter}/answers.toml": _has(chapter, "answers.toml"),
        f"`make readme` writes {chapter}/ANSWERS.md": _has(chapter, "ANSWERS.md"),
        f"write notebooks/{chapter}_<topic>.ipynb": any(ROOT.glob(f"notebooks/{chapter}*_*.ipynb")),
        f"add a row to the map in README.md that links to {chapter}/": f"{chapter}/" in course.read_text("utf-8"),
    }
    return [step for step, is_done in has.items() if not is_done]


def _has(chapter: str, file: str) -> bool:
    path = ROOT / chapter / file
    return path.is_file() and BLANK not in path.read_text(encoding="utf-8")


def _pair(name: str) -> Iterator[tuple[str, str]]:
    """(Kind, code) of both files, from the guide's pair under another name."""
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name for a pair: use words of a-z and 0-9, joined by _")
    for kind, guides_name, code in BLOCK.findall((ROOT / GUIDE).read_text(encoding="utf-8")):
        yield kind, code.replace(f"_{guides_name}.py", f"_{name}.py")


def _require_free(folder: Path, name: str, paths: list[Path]) -> None:
    """Raises UserError where a pair would replace another one, or be read as its variant."""
    for path in paths:
        if path.exists():
            raise UserError(f"{path} exists: choose another name")
    others = {path.stem.removeprefix("baseline_") for path in folder.glob("baseline_*.py")}
    for other in sorted(others):
        if f"{name}_".startswith(f"{other}_") or f"{other}_".startswith(f"{name}_"):
            raise UserError(f"{name} and {other} of {folder.name}: one would be a variant of the other; rename it")
