"""A new pair and a new chapter: files that run as they are, nothing replaced, and what is still to be done."""

import shutil

import pytest

import benchmark
from common.cli import skeletons
from common.pairs.pair import ROOT, chapters, discover


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout with one chapter."""
    for name in ("CONTRIBUTING.md", "Makefile", "README.md"):
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


def test_a_place_that_cannot_be_written_is_named(capsys):
    assert benchmark.main(["--new", "/proc/none", "sums"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "/proc/none" in line and "cannot be written" in line


def test_a_new_chapter_says_what_it_lacks(course, capsys):
    assert benchmark.main(["--new", "ch9", "sums"]) == 0
    assert {path.name for path in (course / "ch9").iterdir()} >= {"compare.py", "README.md", "answers.toml"}
    steps = [line for line in capsys.readouterr().out.splitlines() if line.startswith("then: ")]
    assert any("notebooks/ch9_" in step for step in steps) and any("Makefile" in step for step in steps)
    assert not any("compare.py" in step for step in steps)


@pytest.mark.parametrize("number", chapters())
def test_a_chapter_is_complete(number):
    assert skeletons.missing_steps(f"ch{number}") == []
