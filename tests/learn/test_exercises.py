"""Every exercise: its start fails, its solution passes; an alternative of some does; a wrong answer gets its message.

All alternatives and wrong answers are judged by `make mutants`; here one of each chapter and of each kind.
"""

import ast
import json
import re
import shutil

import pytest
from mutants import answers
from samples import refused

from common.learn.exercise import NOTEBOOKS, exercises, find, read
from common.learn.gate import NOT_YET, PASSED
from common.learn.grade import grade
from common.machine.device import default_device
from common.pairs.pair import ROOT, chapters, discover
from common.show.quoted_figures import newest_figure

KNOWN = exercises()
REST = pytest.mark.rest
SAMPLE = {"ch1/coalesce"}  # what `make test` runs whole; all others are left to `make test-all`
GROUPS = {group.subject: group for group in answers.groups()}
FIRST = {key: each for each in reversed(KNOWN) for key in (each.chapter, each.kind)}
JUDGED = {each.id: each for each in [find("ch1/coalesce"), *FIRST.values()]}
ALTERNATIVES = [(each, path) for each in JUDGED.values() for path in sorted(each.folder.glob("alternatives/*.py"))[:1]]
RIGHT = [*((each, each.solution) for each in KNOWN), *ALTERNATIVES]
QUOTED = {  # figures that a specification gives to start from: exercise -> what they are called in the records
    "ch3/second_reads": [
        "ch3 softmax tuned: ratio at batch/65536x1024",
        "ch3 softmax tuned: ratio at batch/65536x1024/fp16",
        "ch3 softmax registers: ratio at large/4096x65536",
    ],
    "ch4/predictions": [
        "ch4 split_k baseline: time at medium/16x8192x8192",
        "ch4 split_k baseline: time at medium/16x128x262144",
    ],
}
GIVEN = re.compile(r"\d[\d.]*x\b|(?:version takes|They take) (\d+ [mu]s)")
PAIRS = {f"ch{number}/{pair.name}" for number, folder in chapters().items() for pair in discover(folder)}


def cases(found):
    return [
        pytest.param(each, of, id=f"{each.id}-{getattr(of, 'stem', of)}", marks=() if each.id in SAMPLE else REST)
        for each, of in found
    ]


def words(found):
    return "\n".join(f"{gate.name}: {gate.text}" for gate in found.gates)


@pytest.mark.parametrize(("exercise", "path"), cases((each, each.start) for each in KNOWN))
def test_the_start_fails_at_once(exercise, path):
    found = grade(exercise, path)
    assert found.status == NOT_YET, words(found)


@pytest.mark.parametrize(("exercise", "path"), cases(RIGHT))
def test_a_right_answer_passes(exercise, path):
    if answers.unrecorded(exercise):
        pytest.xfail("figures that it asks for are not recorded yet: make record on a GPU")
    found = grade(exercise, path)
    assert found.status == PASSED, words(found)


@pytest.mark.parametrize(("exercise", "name"), cases((each, next(iter(each.wrong))) for each in JUDGED.values()))
def test_a_wrong_answer_gets_its_message_at_its_gate(exercise, name):
    group = GROUPS[exercise.id]
    assert group.problems(dict(group.results([name], default_device()))) == {}


@pytest.mark.parametrize("exercise", KNOWN, ids=lambda each: each.id)
def test_an_exercise_is_whole(exercise):
    assert len(exercise.wrong) >= 4
    assert exercise.hints[0].endswith("?"), "the first hint is a question"
    assert exercise.chapter == "ch0" or f"{exercise.chapter}/{exercise.pair}" in PAIRS
    assert len(exercise.objective) <= 160 and 3 <= exercise.minutes <= 60


@pytest.mark.parametrize("exercise", [each for each in KNOWN if each.kind == "count"], ids=lambda each: each.id)
def test_a_reader_sees_the_program_that_is_counted(exercise):
    """A start that shows it has a copy, so that it reads alone; in two exercises the text shows it."""
    counted, shown = (
        {node.name: ast.dump(node) for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        for path in (exercise.folder / "cases/program.py", exercise.start)
    )
    assert counted.keys() & shown.keys() or exercise.id in ("ch2/columns", "ch5/count")
    assert [name for name in counted.keys() & shown.keys() if counted[name] != shown[name]] == []


@pytest.mark.parametrize("exercise", KNOWN, ids=lambda each: each.id)
def test_what_an_exercise_says_to_read_stands_before_it(exercise):
    """Sections with these numbers, above the cell that shows it, and pairs with such a version."""
    assert exercise.read, "`read` names the sections and the pair that teach what is asked"
    for of, *words in map(str.split, exercise.read):
        if of == "pair":
            file = "_".join(["optimized" if words[1:] else "baseline", *words])
            assert (ROOT / exercise.chapter / f"{file}.py").is_file(), words
        else:
            chapter = words[words.index("of") + 1] if "of" in words else exercise.chapter
            numbers = [int(word) for word in words if word.isdigit()]
            assert max(numbers) <= max(sections_before(chapter, exercise.id)), f"{of} {words}"


def sections_before(chapter, shown):
    """Numbers of the sections of a chapter's notebooks above the exercise's cell; all if another chapter has it."""
    found = []
    for path in sorted(NOTEBOOKS.glob(f"{chapter}_*.ipynb")):
        cells = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
        here = next((place for place, text in enumerate(cells) if f'nb.learn.show("{shown}")' in text), len(cells))
        if here < len(cells) or not shown.startswith(f"{chapter}/"):
            found += map(int, re.findall(r"^## (\d+)\.", "\n".join(cells[:here]), re.MULTILINE))
    return found


def test_each_chapter_has_its_exercises_in_an_order():
    for chapter in {each.chapter for each in KNOWN}:
        orders = [each.order for each in KNOWN if each.chapter == chapter]
        assert orders == sorted(set(orders)), f"{chapter}: two exercises have the same place"
        cells = "".join(path.read_text(encoding="utf-8") for path in sorted(NOTEBOOKS.glob(f"{chapter}*.ipynb")))
        shown = re.findall(r'nb\.learn\.show\(\\"(\S+?)\\"\)', cells)
        assert shown == [each.id for each in KNOWN if each.chapter == chapter], f"{chapter}: `order` is the notebook's"


@pytest.mark.parametrize("name", QUOTED)
def test_a_figure_that_is_given_is_the_recorded_one(name, committed):
    found = [newest_figure(title) for title in QUOTED[name]]
    if answers.unrecorded(find(name)) or not all(map(answers.is_recorded, found)):
        pytest.xfail("not recorded yet: make record on a GPU")
    given = [match[1] or match[0] for match in GIVEN.finditer(find(name).spec)]
    assert [*map(as_given, found)] == given


def as_given(figure):
    """A specification gives ratios as they are recorded, and times in whole units."""
    number, _, unit = figure.partition(" ")
    return f"{float(number):.0f} {unit}" if unit else figure


@pytest.mark.parametrize(("figure", "given"), [("1.62x", "1.62x"), ("44.3 us", "44 us"), ("1.01 ms", "1 ms")])
def test_a_time_is_given_in_whole_units(figure, given):
    assert as_given(figure) == given


@pytest.mark.parametrize(
    ("old", "new", "is_open_again"),
    [
        ("sectors = 1.1", "sectors = 1.2", True),
        ("minutes = 30", "minutes = 9", False),
        ("Ask for it", "Load it", False),
    ],
)
def test_another_wording_opens_no_exercise_again(old, new, is_open_again, tmp_path):
    window = find("ch2/window")
    shutil.copytree(window.folder, tmp_path / "ch2/window")
    path = tmp_path / "ch2/window/exercise.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert (read(path).hash != window.hash) == is_open_again


@pytest.mark.parametrize("module", ["token", "types", "torch", "common"])
def test_no_exercise_has_the_name_of_a_module_which_its_file_would_hide(module, tmp_path):
    """Scripts in work/ch2 find work/ch2/token.py before Python's own, which torch needs."""
    folder = tmp_path / f"ch2/{module}"
    shutil.copytree(find("ch2/window").folder, folder)
    with refused(f"the module `{module}` would be hidden by work/ch2/{module}.py", folder / "exercise.toml"):
        read(folder / "exercise.toml")
