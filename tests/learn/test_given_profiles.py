"""Profiles that exercises give: each is of the solution's program, and the figures in exercise.toml follow from it."""

import math

import pytest

from common.cli import learn_text
from common.learn.answer_gates import _range
from common.learn.exercise import exercises, find
from common.record import profile_file
from common.record.profile_file import MOST_BYTES
from common.show.formats import seconds
from common.show.lanes import Part, lanes, totals
from tools.given_profiles import program_hash

GIVEN = [each for each in exercises() if each.profile]


def figures(exercise):
    """(The profiled call, name -> seconds, the parts of the CPU's lane.)"""
    profile = profile_file.load(exercise.profile)
    return profile.about.profiled_s, {n: s for n, (_, s) in totals(profile).items()}, lanes(profile)[0].totals


def images():
    whole, names, parts = figures(find("ch8/images"))
    loading, optimizer = (
        names["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"],
        "Optimizer.step#AdamW.step",
    )
    of_products = ("aten::conv2d", "ConvolutionBackward0", "aten::linear", "AddmmBackward0")
    products = sum(time for name, time in names.items() if name.endswith(of_products))
    texts = [
        f"{seconds(loading)} of {seconds(whole)} pass",
        f"take {seconds(products)} of {seconds(whole)}",
        f"{seconds(parts[Part.PYTHON])} of Python",
        f"Optimizer.step takes {seconds(names[optimizer])}",
        f"take {seconds(parts[Part.OPERATORS])} of",
        f"tensor: {seconds(names['aten::stack'])} of",
        f"in the {seconds(whole - loading)} of the rest",
    ]
    return {"gain": whole / (whole - loading), "workers": math.ceil(loading / (whole - loading))}, texts


def sentences():
    whole, names, parts = figures(find("ch8/sentences"))
    compiling, rest = names["dynamo"], whole - names["dynamo"]
    regions = {name: time for name, time in names.items() if name.startswith("Torch-Compiled Region: 0/")}
    (products,) = (time for name, time in names.items() if name.endswith(" MmBackward0"))
    texts = [
        f"takes {seconds(compiling)} of {seconds(whole)} in 2 calls",
        f"regions {seconds(sum(regions.values()))},",
        f"Python has {seconds(parts[Part.PYTHON])}",
        f"Optimizer.step takes {seconds(names['Optimizer.step#SGD.step'])}",
        f"products takes {seconds(products)} of",
        f"less than {math.ceil(1e3 * rest)} ms of",
    ]
    return {"gain": whole / rest, "versions": 1 + max(int(name.split("/")[1]) for name in regions)}, texts


FIGURES = {"ch8/images": images, "ch8/sentences": sentences}


def test_each_is_looked_at():
    assert [each.id for each in GIVEN] == [*FIGURES]


@pytest.mark.parametrize("exercise", GIVEN, ids=lambda each: each.id)
def test_a_profile_is_small_and_of_the_solutions_program(exercise):
    assert exercise.profile.stat().st_size <= MOST_BYTES
    assert profile_file.load(exercise.profile).about.source_hash == program_hash(exercise), (
        "record it again: see --help"
    )


@pytest.mark.parametrize("exercise", GIVEN, ids=lambda each: each.id)
def test_what_is_right_and_what_is_told_follows_from_the_profile(exercise):
    right, texts = FIGURES[exercise.id]()
    for name, value in right.items():
        assert exercise.answers[name]["is"] == pytest.approx(value, rel=0.005)
    text = (exercise.folder / "exercise.toml").read_text(encoding="utf-8")
    assert [each for each in texts if each not in text] == []


@pytest.mark.parametrize("exercise", GIVEN, ids=lambda each: each.id)
def test_a_reader_sees_it_with_its_place(exercise, capsys):
    learn_text.print_exercise(exercise, "work/x.py")
    shown = capsys.readouterr().out
    longest = next(iter(totals(profile_file.load(exercise.profile))))
    assert longest[:40] in shown and str(exercise.profile.relative_to(exercise.folder.parents[2])) in shown


@pytest.mark.parametrize(
    ("value", "passed", "text"),
    [
        ((3.0, 4.0), True, "3 to 4 holds 3.5. so"),
        ((3.5, 3.5), True, "holds"),
        ((3.6, 4.0), False, "3.6 to 4 lies too high. more stays"),
        ((2.9, 3.4), False, "2.9 to 3.4 lies too low"),
        ((2.0, 4.0), False, "a factor 2.0 says little: at most 1.5"),
        (3.5, False, "3.5 is no range"),
    ],
)
def test_a_range_of_a_figure_that_follows(value, passed, text):
    gate = _range("gain", value, {"is": 3.5, "widest": 1.5, "why": "so", "says": {"high": "more stays"}})
    assert gate.passed is passed and text in gate.text
    assert (gate.scored is None) == ("says little" in text or "no range" in text)
