"""A new pair and a new chapter: files that run as they are, nothing replaced, and what is still to be done."""

import errno
import os
import shutil
from unittest.mock import Mock

import pytest
from samples import refused

import benchmark
from common.cli import learn_commands, skeletons
from common.learn import exercise
from common.learn.exercise import EXERCISES
from common.pairs.pair import ROOT, chapters, discover


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout with one chapter."""
    for name in ("CONTRIBUTING.md", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "ch1").mkdir()
    shutil.copy(ROOT / "ch1/compare.py", tmp_path / "ch1")
    monkeypatch.setattr(skeletons, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_pair_is_one_that_is_found(tmp_path, capsys):
    assert benchmark.main(["--new", str(tmp_path / "mine"), "two_sums"]) == 0
    (pair,) = discover(tmp_path / "mine")
    assert pair.name == "two_sums" and len(pair.versions) == 2
    assert "blend" not in pair.baseline.path.read_text(encoding="utf-8").split("Predict:")[1].splitlines()[0]
    assert f"--path {tmp_path / 'mine'} --only two_sums --check" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "problem"),
    [("sums", "exists"), ("sums_twice", "a variant of the other"), ("Sums", "is no name"), ("../sums", "is no name")],
)
def test_nothing_is_replaced_and_no_name_is_read_as_anothers(name, problem, tmp_path, capsys):
    folder = tmp_path / "mine"
    assert benchmark.main(["--new", str(folder), "sums"]) == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    assert benchmark.main(["--new", str(folder), name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["chapter8", "Chapter_8", "ch08", "8"])
def test_a_folder_that_is_almost_a_chapters_is_refused_with_its_name(name, course, capsys):
    assert benchmark.main(["--new", name, "sums"]) == 2
    said = "benchmark.py: a chapter's folder is called chN: --new ch8 sums\n"
    assert capsys.readouterr().err == said and not (course / name).exists()


def test_no_folder_is_not_this_one(course, capsys):
    before = {*course.iterdir()}
    assert benchmark.main(["--new", "", "sums"]) == 2
    assert capsys.readouterr().err == "benchmark.py: a pair needs a folder: --new DIR NAME\n"
    assert {*course.iterdir()} == before


def test_a_place_that_cannot_be_written_is_named(capsys):
    assert benchmark.main(["--new", "/proc/none", "sums"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "/proc/none" in line and "cannot be written" in line


def test_a_new_chapter_says_what_it_lacks(course, capsys):
    assert benchmark.main(["--new", "ch9", "sums"]) == 0
    names = {"compare.py", "README.md", "answers.toml", "lessons.toml"}
    assert {path.name for path in (course / "ch9").iterdir()} >= names
    assert "ch1" not in (course / "ch9/compare.py").read_text(encoding="utf-8")
    steps = [line for line in capsys.readouterr().out.splitlines() if line.startswith("then: ")]
    assert any("notebooks/ch9_" in step for step in steps) and any("map" in step for step in steps)
    assert any("fill in ch9/README.md" in step for step in steps)
    assert not any("compare.py" in step for step in steps)


def test_a_new_exercise_is_the_last_of_its_chapter_and_replaces_none(tmp_path, monkeypatch, capsys):
    shutil.copytree(EXERCISES / "ch1", tmp_path / "ch1")
    for module in (skeletons, exercise):
        monkeypatch.setattr(module, "EXERCISES", tmp_path)
    last = max(one.order for one in exercise.exercises())
    assert learn_commands.main(["new", "ch1/my_sum"]) == 0
    made = exercise.find("ch1/my_sum")
    assert made.order == last + 1 and made.title.startswith("ch1/my_sum") and len(made.wrong) >= 4
    capsys.readouterr()
    for name, problem in (
        ("ch1/my_sum", "exists"),
        ("my_sum", "is no name"),
        ("ch77/my_sum", "no chapter ch77"),
        ("ch1/token", "the module `token` would be hidden"),
    ):
        assert learn_commands.main(["new", name]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert problem in line


@pytest.mark.parametrize("number", chapters())
def test_a_chapter_is_complete(number):
    steps = skeletons.missing_steps(f"ch{number}")
    assert not steps, "; ".join(steps)


def test_a_full_disk_leaves_no_empty_file_that_forbids_the_next_try(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    with refused(r"cannot be written \(No space left on device\)", tmp_path / "baseline_blur.py"):
        skeletons.new_pair(str(tmp_path), "blur")
    assert os.listdir(tmp_path) == []
