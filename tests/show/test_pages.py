"""The tables of READMEs and pages say what was recorded, and nothing of pairs that have changed since."""

import json
import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import pytest
from samples import one_pair, pair_result, record, rows_of, version

from common.pairs.pair import ROOT
from common.pairs.source import source_hash
from common.record.files import RECORDED
from common.record.outcome import Cause, Finding
from common.record.result import Row
from common.record.store import keep_record
from common.show import quoted_figures
from common.show.tables import NOTHING
from tools import front_page, readmes
from tools.__main__ import main

BEFORE, AFTER = "# Title\n\n| a table | of ours |\n\n", "\n\nThe end.\n"
README = f"{BEFORE}{readmes.MARKER.format('ch1')}\nold\n{readmes.END}{AFTER}"
NAMES = ["default", "cpu", "small", *(f"large/{letter}" for letter in "abcd")]
SIZES = {"check": {"n": 127}, **{name: {"n": 8} for name in NAMES}}
VERSION = version(sizes=SIZES)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one chapter with one pair; course(*results) records these, course.of(size) is one of the pair's."""
    for module in ("tools.readmes", "tools.answers_page", "common.show.quoted_figures"):
        monkeypatch.setattr(f"{module}.ROOT", tmp_path)
    monkeypatch.setattr("tools.minutes.NOTEBOOKS", tmp_path)
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    for name in ("_results", "_is_current"):  # what they remember is of another course
        monkeypatch.setattr(quoted_figures, name, cache(getattr(quoted_figures, name).__wrapped__))
    pair = one_pair(tmp_path / "ch1", VERSION, VERSION)
    (tmp_path / "ch1" / "README.md").write_text(README)

    def keep(*results, **fields):
        keep_record(record(*results, **fields), tmp_path / "recorded")

    keep.of = lambda size="default", **fields: pair_result(size=size, **{"source_hash": source_hash(pair), **fields})
    return keep


def page(device="nvidia_h200"):
    (text,) = [text for path, text in readmes.pages().items() if path.parts[-2:] == (device, "ch1.md")]
    return text


def test_only_what_lies_between_the_markers_is_made_anew(course):
    course(course.of())
    text = readmes.fill_in_tables(README)
    assert text.startswith(BEFORE + readmes.MARKER.format("ch1")) and text.endswith(readmes.END + AFTER)
    assert "| 2.00x | [1.98, 2.02] |" in text and "old" not in text
    assert readmes.fill_in_tables(text) == text
    assert readmes.fill_in_tables("no markers") == "no markers"


@pytest.mark.parametrize(
    ("now", "is_stale"),
    [
        (version("return x + x + w_shift", sizes=SIZES), True),
        (version(sizes=SIZES | {"default": {"n": 9}}), True),
        (version(sizes=SIZES | {"small": {"n": 9}}).replace("Double", "Twice"), False),  # neither was measured
    ],
)
def test_a_pair_whose_code_or_size_changes_loses_its_row(now, is_stale, course, tmp_path):
    course(course.of())
    one_pair(tmp_path / "ch1", now, now)
    for text in (readmes.fill_in_tables(README), page()):
        assert ("eft out, because the pair has changed since: double" in text) is is_stale
        assert ("2.00x" in text) is not is_stale


def test_the_command_writes_every_readme_and_every_page(course, tmp_path, capsys):
    course(course.of())
    link = '[{}](/recorded/nvidia_h200/ch1.md "double optimized: ratio")'
    cell = {"cell_type": "markdown", "source": ["Allow 1 minutes.\n", link]}
    notebook = tmp_path / "ch1_one.ipynb"
    notebook.write_text(json.dumps({"cells": [cell]}))
    (tmp_path / "common").mkdir()
    paths = [tmp_path / name for name in ("README.md", "common/MEASUREMENT.md", "ch1/README.md")]
    for path in paths:
        path.write_text(README + f"{readmes.CALIBRATION}\nold\n{readmes.END}\n")
    useless, made = (tmp_path / "recorded" / "nvidia_h200" / f"{chapter}.md" for chapter in ("ch2", "ch1"))
    useless.write_text("of a chapter of which nothing is recorded")
    assert main(["readmes"]) == 0
    for path in paths:
        assert "| 2.00x | [1.98, 2.02] |" in path.read_text()
        assert path.read_text().endswith(f"{readmes.CALIBRATION}\n{NOTHING}\n{readmes.END}\n")
    assert made.read_text() == page()
    assert not useless.exists()
    assert json.loads(notebook.read_text())["cells"][0]["source"][1] == link.format("2.00x")
    names = [
        "README.md",
        "ch1/README.md",
        "ch1_one.ipynb",
        "common/MEASUREMENT.md",
        "limits.svg",
        "recorded/nvidia_h200/ch1.md",
    ]
    changes = ["removed: recorded/nvidia_h200/ch2.md", *(f"written: {name}" for name in names)]
    assert sorted(capsys.readouterr().out.splitlines()) == changes
    assert (main(["readmes"]), capsys.readouterr().out) == (0, "nothing changed\n")
    (tmp_path / "ch1" / "optimized_double.py").write_text("def def")
    assert main(["readmes"]) == 2
    assert re.fullmatch(r".*optimized_double\.py:1: syntax error.*\n", capsys.readouterr().err)


def test_the_readme_begins_with_the_distance_of_each_pair_from_its_limit(course):
    marked = f"{readmes.PICTURE}\nold\n{readmes.END}\n{readmes.SAMPLE}\nold\n{readmes.END}\n"
    assert readmes.fill_in_tables(marked).count(NOTHING) == 2
    course(course.of(ratio=50.0))  # the limit is 0.5 ms, the versions take 50 and 1
    assert "1 of 1 pairs on H200" in readmes.fill_in_tables(marked)
    (picture,) = [text for path, text in readmes.pages().items() if path.name == front_page.PICTURE]
    svg = {"svg": "http://www.w3.org/2000/svg"}
    drawn = ElementTree.fromstring(picture).findall("svg:g/svg:g/svg:circle", svg)
    heights = {circle.get("class"): float(circle.get("cy")) - front_page.TOP for circle in drawn}
    lowest = front_page.DEPTH  # 1 %: two powers of ten below the limit
    assert heights == {"first": pytest.approx(lowest, abs=0.1), "best": pytest.approx(lowest * 0.1505, abs=0.1)}
    (title,) = ElementTree.fromstring(picture).findall("svg:g/svg:g/svg:title", svg)
    assert title.text == "double: baseline 1 %, optimized 50 %"


# Pages


def test_a_page_has_a_table_for_each_class_with_its_files(course):
    course(*map(course.of, ("default", "small", "large/a", "large/b")))
    text = page()
    assert text.startswith("# ch1 on NVIDIA H200\n\n## default\n\nRecorded on NVIDIA H200, 2026-01-02 (torch 2.11.0): ")
    sections = dict(zip(*[iter(re.split(r"^## (\w+)\n\n", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    assert list(sections) == ["default", "small", "large"]
    for name, file in (("default", "ch1.json"), ("small", "ch1_small.json"), ("large", "ch1_large.json")):
        assert f"(/recorded/nvidia_h200/{file})" in sections[name].splitlines()[0]
    heading, *rows = rows_of(sections["large"])
    assert heading[:5] == ["pair and version", "verdict", "speedup", "95 % interval", "time"]
    assert [row[0] for row in rows] == ["**double large/a**", "optimized", "**double large/b**", "optimized"]
    assert [row[4] for row in rows] == ["2.00 ms ±0.0 %", "1.00 ms ±0.0 %"] * 2
    assert {len(row) for row in rows} == {len(heading)}
    assert re.findall("- not recorded: .*", text) == ["- not recorded: double large/c, large/d"]


def test_a_page_says_how_its_results_were_measured(course):
    bound = Finding(Cause.HOST_BOUND, {"host_us": 9.0, "device_us": 2.0})
    allocates = Finding(Cause.ALLOCATES, {"bytes": 1 << 20, "baseline": 0})
    notes = [bound, allocates, Finding(Cause.RAISED, {"text": "it raised", "whose": "library"})]
    rows = [Row("optimized", "baseline", "faster", None, 2.0, (1.9, 2.1), {}, notes=notes)]
    beside = ["python (pid 7) kept 1.0 cores busy"]
    arms = pair_result().arms
    slow = arms | {"baseline": replace(arms["baseline"], host_s=7e-3)}
    course(
        course.of("large/a", rows=rows),
        course.of("large/b", neighbours=beside, arms=slow),
        course.of(neighbours=beside),
    )
    said = re.findall("^- (?!best|worst|not recorded)(.*)", page().partition("## large")[2], flags=re.MULTILINE)
    launched = "double large/a (the host needs 9 us to issue 2 us of device work), "
    launched += "double large/b baseline (the host needs 7000 us to issue 2000 us of device work)"
    shared = "other load while measured: "
    average, *said = said
    assert average == "large, best versions of 1 pair at 2 sizes: mean 50 % of the limit"
    assert said == [f"{shared}double large/b", f"launch-bound: {launched}", "library (it raised): double large/a"]
    assert f"\n\n{shared.capitalize()}double.\n\n" in readmes.fill_in_tables(README)


def test_a_bad_file_is_named_and_the_others_are_in_the_tables(course, tmp_path, capsys):
    course(course.of(), date="2026-01-01T00:00:00+00:00")
    bad = tmp_path / "recorded/nvidia_h200/ch1_large.json"
    bad.write_text("{")
    (tmp_path / "README.md").write_text("")
    (tmp_path / "common").mkdir()
    (tmp_path / "common/MEASUREMENT.md").write_text("")
    assert main(["readmes"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith(f"not in the tables: {bad}: not JSON")
    assert "| 2.00x | [1.98, 2.02] |" in (tmp_path / "ch1/README.md").read_text()
    assert "| 2.00x | [1.98, 2.02] |" in bad.with_name("ch1.md").read_text()


# What is committed

CHAPTERS = [path.parent.name for path in sorted(ROOT.glob("ch[0-9]*/README.md"))]  # test_skeletons names one without
MARKERS = {
    "README.md": [],  # a reader predicts first: results stand in the chapters' READMEs
    "common/MEASUREMENT.md": [readmes.CALIBRATION],
    "CONTRIBUTING.md": [readmes.WAYS_OUT],
    **{
        f"{chapter}/README.md": [marker.format(chapter) for marker in (readmes.PAIRS_OF, readmes.MARKER)]
        for chapter in CHAPTERS
    },
}


@pytest.mark.parametrize("path", MARKERS)
def test_the_committed_tables_are_what_is_recorded(path, committed):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert [marker for marker in MARKERS[path] if marker not in text] == []
    assert readmes.fill_in_tables(text) == text, "make readme writes the tables anew"


@pytest.mark.rest
def test_the_committed_pages_are_what_is_recorded(committed):
    paths = [path for path in RECORDED.glob("*/*.md") if "scripts" not in path.name]
    made = {path: text for path, text in readmes.pages().items() if RECORDED in path.parents}
    assert {path: path.read_text(encoding="utf-8") for path in paths} == made, "make readme writes the pages anew"
