"""Quick answers: --list, help, and what lets them be quick, the cache of versions."""

import os
import re
import shutil
import subprocess
import sys
from unittest.mock import Mock

import pytest
from samples import refused, version, write_pair

import benchmark
from common.cli.arguments import listing
from common.pairs import version_cache
from common.pairs.pair import ROOT, chapters, discover
from common.program import Parser

NEEDY = 'import triton\nDEVICE = "cuda"\nREQUIRES = {"gpus": 2, "capability": (9, 0)}'
SENTENCE = "Double a vector and shift it: 8 bytes moved per element."


@pytest.fixture
def course():
    return [pair for folder in chapters().values() for pair in discover(folder)]


# The list


def test_a_ladder_has_a_line_a_version_with_its_sentence_and_its_needs(tmp_path):
    later = version(extra='VERSUS = "triton"')
    write_pair(tmp_path, "double", {"best": later, "triton": version(extra=NEEDY)})
    pairs = discover(tmp_path)
    assert listing(pairs).splitlines() == [
        "double",
        f"  baseline  {SENTENCE}",
        f"  triton    {SENTENCE} [2 GPUs, capability 9.0, triton]",
        f"  best      {SENTENCE}",
    ]
    assert listing(pairs, is_verbose=True).splitlines()[4:] == ["  sizes: check, default"]
    assert listing(pairs, True, 50).splitlines()[2:7] == [
        "            moved per element.",
        "  triton    Double a vector and shift it: 8 bytes",
        "            moved per element. [2 GPUs, capability",
        "            9.0, triton]",
        "  best      Double a vector and shift it: 8 bytes",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_list_of_the_course_fits_and_loses_no_word(width, course):
    for verbose in (False, True):
        text = listing(course, verbose, width)
        assert max(map(len, text.splitlines())) <= width
        assert text.split() == listing(course, verbose).split()


def test_chapters_are_headed_where_there_are_several(course):
    lines = listing(course).splitlines()
    headings = [line for line in lines if line.startswith("Chapter ")]
    assert headings == [f"Chapter {number}" for number in chapters()]
    assert {pair.name for pair in course} <= {re.split(r": | \(in ", line)[0] for line in lines}
    assert "Chapter" not in listing([pair for pair in course if pair.chapter == "ch1"])


@pytest.mark.parametrize("options", [["-v"], ["--verbose"]])
def test_sizes_are_listed_on_request(options, capsys):
    assert benchmark.main(["--list", "--chapter", "1", *options]) == 0
    assert capsys.readouterr().out.count("\n  sizes: check") == len(discover(ROOT / "ch1"))
    assert benchmark.main(["--list", "--chapter", "1"]) == 0
    assert "sizes" not in capsys.readouterr().out


# The cache of versions


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A chapter of the course whose files count as old: `double` with a helper, and `triple`."""
    folder = tmp_path / "ch1"
    write_pair(folder, "double", version(extra="import helper"))
    write_pair(folder, "triple", version())
    (folder / "helper.py").write_text("import torch\n")
    monkeypatch.setattr("common.pairs.pair.chapters", lambda: {1: folder})
    monkeypatch.setattr(version_cache, "TICK_NS", -(10**12))
    return folder


@pytest.fixture
def parsed(monkeypatch):
    """parsed(folder): the names of the files that `discover` had to read; what it returns is always as if anew."""
    reader = Mock(wraps=version_cache.read_version)
    monkeypatch.setattr(version_cache, "read_version", reader)

    def of(folder):
        reader.reset_mock()
        pairs = discover(folder)
        names = sorted(call.args[0].stem for call in reader.call_args_list)
        shutil.rmtree(folder.parent / "anew", ignore_errors=True)
        shutil.copytree(folder, folder.parent / "anew" / folder.name)
        anew = discover(folder.parent / "anew" / folder.name)
        for pair, other in zip(pairs, anew, strict=True):
            assert pair.sizes == other.sizes
            for one, another in zip(pair.versions, other.versions, strict=True):
                assert {**vars(one), "path": one.path.name} == {**vars(another), "path": another.path.name}
        return names

    return of


ALL = ["baseline_double", "baseline_triple", "optimized_double", "optimized_triple"]
WITH_HELPER = ["optimized_double"]
BOTH = ["baseline_double", *WITH_HELPER]


def test_what_has_not_changed_is_not_read_again(chapter, parsed):
    assert [parsed(chapter), parsed(chapter)] == [ALL, []]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("optimized_double.py", version(extra="import numpy").replace("SIZES =", "_SIZES ="), WITH_HELPER),
        ("baseline_double.py", version(sizes={"check": {"n": 3}, "default": {"n": 4}}), BOTH),
        ("helper.py", "import numpy\n", WITH_HELPER),
        ("helper.py", None, WITH_HELPER),
        ("torch.py", "", ALL),  # a new file, for which all asked already
        ("another.py", "", []),
    ],
)
def test_what_has_changed_is_read_anew(file, text, expected, chapter, parsed):
    parsed(chapter)
    (chapter / "helper").mkdir()  # takes the place of a helper that is gone
    if text is None:
        (chapter / file).unlink()
    else:
        (chapter / file).write_text(text)
    assert parsed(chapter) == expected
    assert parsed(chapter) == []


def test_a_change_within_a_package_is_seen_too(chapter, parsed):
    (chapter / "helper.py").unlink()
    (chapter / "helper").mkdir()
    part = chapter / "helper" / "part.py"
    part.write_text("import torch\n")
    assert [parsed(chapter), parsed(chapter)] == [ALL, []]
    part.write_text("import numpy\n")
    assert parsed(chapter) == WITH_HELPER


def test_a_file_that_may_change_once_more_within_a_tick_is_not_kept(chapter, parsed, monkeypatch):
    monkeypatch.undo()
    reader = Mock(wraps=version_cache.read_version)
    monkeypatch.setattr(version_cache, "read_version", reader)
    monkeypatch.setattr("common.pairs.pair.chapters", lambda: {1: chapter})
    discover(chapter)
    discover(chapter)
    assert reader.call_count == 2 * len(ALL)


def damages():
    yield "empty", lambda path: path.write_bytes(b"")
    yield "cut off", lambda path: path.write_bytes(path.read_bytes()[:-1])
    yield "one bit", lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1]))
    yield "foreign", lambda path: path.write_text('{"versions": 1}')
    yield "two writers", lambda path: path.write_bytes(path.read_bytes() + path.read_bytes()[40:])


@pytest.mark.parametrize("damage", [pytest.param(damage, id=name) for name, damage in damages()])
def test_a_damaged_cache_is_no_cache(damage, chapter, parsed):
    parsed(chapter)
    damage(chapter.parent / ".cache/ch1.versions")
    assert [parsed(chapter), parsed(chapter)] == [ALL, []]


def test_a_change_of_the_code_that_reads_is_one_of_all_files(chapter, parsed, monkeypatch):
    parsed(chapter)
    monkeypatch.setattr(sys, "version", "3.99")
    assert [parsed(chapter), parsed(chapter)] == [ALL, []]


@pytest.mark.parametrize("place", [".cache", ".cache/ch1.versions/folder"])
def test_a_cache_that_cannot_be_written_is_no_error(place, chapter, parsed):
    path = chapter.parent / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("no folder")
    assert [parsed(chapter), parsed(chapter)] == [ALL, ALL]
    assert path.read_text() == "no folder"


def test_errors_are_found_anew_and_cost_the_others_nothing(chapter, parsed):
    (chapter / "optimized_triple.py").write_text("broken(")
    for _ in range(2):
        with refused("syntax error", chapter / "optimized_triple.py"):
            discover(chapter)
    (chapter / "optimized_triple.py").write_text(version().replace("SIZES =", "_SIZES ="))
    assert parsed(chapter) == ["optimized_triple"]


def test_of_a_readers_own_folder_nothing_is_kept(tmp_path):
    write_pair(tmp_path / "pairs", "double", version())
    discover(tmp_path / "pairs")
    assert os.listdir(tmp_path) == ["pairs"]


# Help

TEXT = """What it does, in a sentence that is longer than sixty columns can hold on one line.

  tool.py --option VALUE            explains what this does, in many words, beyond sixty
  tool.py                           short
"""


def test_help_is_wrapped_between_words_and_examples_stay_lines(monkeypatch, capsys):
    below = ["  tool.py --option VALUE", "      explains what this does, in many words, beyond sixty", "  tool.py"]
    for columns, expected in ((120, TEXT.splitlines()[2:4]), (60, below)):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit):
            Parser("tool.py", description=TEXT, epilog=TEXT).parse_args(["--help"])
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns
        start = lines.index(expected[0])
        assert lines[start : start + len(expected)] == expected
        assert sum(line.startswith("  tool.py") for line in lines) == 4


def fits(text, columns=80):
    return [line for line in text.splitlines() if len(line) > columns]


@pytest.mark.parametrize("words", ["benchmark.py", "learn.py", "ch6/scale.py", "ch6/collectives.py", "ch1/compare.py"])
def test_the_help_of_programs_fits_80_columns(words):
    environment = {**os.environ, "COLUMNS": "80"}
    command = [sys.executable, *words.split(), "--help"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: {words}") or words.startswith("ch6")
    assert fits(done.stdout) == []


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_help_fits_80_columns_and_names_every_target():
    out = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert fits(out) == []
    names = " ".join(f"ch{number}" for number in chapters())
    text = (ROOT / "Makefile").read_text().replace("$(CHAPTERS):", f"{names}:")
    targets = re.findall(r"^([a-z0-9- ]+):.*## (.*)", text, re.MULTILINE)
    assert out.split() == " ".join(f"make {target} {words}" for target, words in targets).split()


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_measures_a_chapter_although_its_folder_exists():
    for number in chapters():
        command = ["make", "--dry-run", "--old-file=.venv/.ready", "PY=python", f"ch{number}"]
        out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert out == f"python benchmark.py --chapter {number}\n"
