"""How figures are written; the READMEs' tables say what was recorded, and nothing of pairs that have changed since."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from common.record.recording import keep_record
from samples import arm, one_pair, pair_result, record, version

from common.pairs.pair import ROOT, source_hash
from common.record import recording
from common.record.result import Row
from common.show import beside, console, report, summary

HASH = "0123456789abcdef"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2.00 s"),
        (123.4, "123 s"),
        (4321.0, "4321 s"),
        (1.0, "1.00 s"),
        (0.5, "500 ms"),
        (12.34e-3, "12.3 ms"),
        (1e-3, "1.00 ms"),
        (999.4e-6, "999 us"),
        (999.7e-6, "1.00 ms"),
        (64.4e-6, "64.4 us"),
        (1e-6, "1.00 us"),
        (0.25e-6, "250 ns"),
        (1.5e-9, "1.50 ns"),
    ],
)
def test_times_are_written_in_their_unit(value, text):
    assert report.seconds(value) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Row("optimized", "baseline", "faster", "", 2.3456, (2.2, 2.5)), "2.35x [2.20, 2.50]"),
        (Row("optimized", "baseline", "faster", "", 2.3456, (2.2, 2.5), {}, "bf16"), "2.35x [2.20, 2.50] bf16"),
        (Row("optimized", "baseline", "slower", "", 0.35, (0.3, 0.4)), "0.350x [0.300, 0.400]"),
        (Row("optimized", "baseline", "unsure", "few blocks", 1.0, None), "1.00x"),
        (Row("optimized", "baseline", "faster", "", 1234.0, (999.9, 2345.0)), "1234x [1000, 2345]"),
        (Row("optimized", "baseline", "checked"), ""),
    ],
)
def test_a_ratio_is_written_with_its_interval_and_precision(row, text):
    assert report.ratio(row) == text


def test_time_and_share_of_the_limit_are_the_arms_own():
    pair = pair_result(ratio=2.5)
    (row,) = pair.rows
    assert report.times(pair, row) == "2.50 ms -> 1.00 ms"
    assert report.share(pair, row) == "50% / 25% dram"
    measured = pair_result(
        arms={**pair.arms, "optimized": arm(of_limit=0.876, of_datasheet=None)}, limit_by="fp32_flops"
    )
    assert report.share(measured, row) == "88% fp32"
    unknown = pair_result(arms={**pair.arms, "optimized": arm(of_limit=None, of_datasheet=None)})
    assert report.share(unknown, row) == ""
    invalid = Row("optimized", "baseline", "invalid", "wrong answer")
    assert report.times(pair_result(rows=[invalid], arms={}), invalid) == ""
    assert report.share(pair_result(rows=[invalid], arms={}), invalid) == ""


def test_libraries_are_written_with_their_labels():
    row = Row(
        "optimized",
        "baseline",
        "faster",
        "",
        2.0,
        (1.9, 2.1),
        {"library": {"ratio": 0.5}, "library/compiled": {"ratio": 1.25}},
    )
    arms = {"library": arm(5e-4), "library/compiled": arm(1.25e-3)}
    pair = replace(pair_result(), rows=[row], arms=arms)
    assert report.libraries(pair, row) == "0.500x D, 1.25x compiled A+"
    assert report.libraries(pair, replace(row, precision="tf32")) == "0.500x tf32, 1.25x compiled tf32"
    in_tf32 = replace(row, vs_library={**row.vs_library, "library/tf32": {"ratio": 1.25, "precision": "tf32"}})
    said = report.libraries(pair, replace(in_tf32, precision="tf32"))
    assert said == "0.500x tf32, 1.25x compiled tf32, 1.25x A+, both tf32", "a grade only for the same work"
    assert report.libraries(pair, row, spread=True) == "0.500x D (500 us ±0.0%), 1.25x compiled A+ (1.25 ms ±0.0%)"


def test_the_spread_stands_beside_the_time_where_it_is_asked_for():
    scattered = arm(1e-3, seconds=[[0.98e-3, 0.99e-3, 1e-3, 1.01e-3, 1.02e-3]] * 6)
    pair = pair_result(arms={"baseline": arm(2e-3), "optimized": scattered, "repeat": arm(2e-3)})
    (row,) = pair.rows
    assert report.times(pair, row) == "2.00 ms -> 1.00 ms"
    assert report.times(pair, row, spread=True) == "2.00 ms ±0.0% -> 1.00 ms ±1.0%"
    assert report.times(pair, replace(row, ratio=None), spread=True) == ""


@pytest.mark.parametrize(
    ("ratio", "expected"), [(1.02, "A+"), (1.019, "A"), (0.98, "A"), (0.979, "B"), (0.9, "B"), (0.6, "D"), (0.49, "F")]
)
def test_a_grade_says_how_a_library_stands_against_a_variant(ratio, expected):
    assert report.grade(ratio) == expected


def test_a_rate_is_of_what_sets_the_limit():
    pair = replace(pair_result(ratio=2.0), cost={"dram_bytes": 4e9, "fp32_flops": 5e12})
    for key, expected in {"dram_bytes": "4000 GB/s", "fp32_flops": "5000 TFLOP/s", "": ""}.items():
        assert report.rate(replace(pair, limit_by=key), pair.rows[0]) == expected


# A run


def graded(name, ratio, precision=""):
    library = {"library": {"ratio": ratio, "interval": (ratio, ratio)}}
    row = Row("optimized", "baseline", "faster", "", 2.0, (1.9, 2.1), library, precision)
    return pair_result(name, rows=[row])


def test_the_best_and_the_worst_against_a_library_are_named():
    pairs = [graded("a", 1.5), graded("b", 0.8), graded("c", 1.0), graded("d", 9.0, "bf16")]
    best, worst = summary.standings(record(*pairs))
    assert best == "best pair, by its best variant, against its fastest library: a default optimized, 1.50x"
    assert worst == "worst pair, by its best variant, against its fastest library: b default optimized, 0.800x"
    assert summary.standings(record(*pairs[:2])) == []


def test_an_operation_stands_by_its_best_variant():
    rung = replace(graded("a", 0.2).rows[0], variant="optimized/rung")
    pairs = [replace(graded("a", 1.5), rows=[rung, *graded("a", 1.5).rows]), graded("b", 0.8), graded("c", 1.0)]
    assert [text.split(": ")[1] for text in summary.standings(record(*pairs))] == [
        "a default optimized, 1.50x",
        "b default optimized, 0.800x",
    ]


def test_an_operation_whose_best_variant_may_not_have_been_timed_has_no_standing():
    short = Row("optimized/rung", "baseline", "checked", "too short for this clock")
    pairs = [graded(name, ratio) for name, ratio in (("a", 1.5), ("b", 0.8), ("c", 1.0))]
    untimed = replace(graded("d", 0.04), rows=[*graded("d", 0.04).rows, short])
    assert summary.standings(record(*pairs, untimed)) == summary.standings(record(*pairs))


def test_a_library_that_was_too_short_to_be_timed_may_be_the_fastest():
    pairs = [graded(name, ratio) for name, ratio in (("a", 1.5), ("b", 0.8), ("c", 1.0), ("d", 9.0))]
    (row,) = pairs[3].rows
    assert summary.fastest_library(pairs[3], row) == (9.0, "library")
    pairs[3].arms["library/short"] = arm(1e-6)
    assert summary.fastest_library(pairs[3], row) is None
    assert summary.standings(record(*pairs)) == summary.standings(record(*pairs[:3]))


def test_the_fastest_library_is_of_those_that_do_the_same_work():
    def library(ratio, **more):
        return {"ratio": ratio, "interval": (ratio, ratio), **more}

    libraries = {"library": library(3.0), "library/tf32": library(4.0, precision="tf32"), "yardstick/add": library(0.1)}
    plain = Row("optimized", "baseline", "faster", "", 2.0, (1.9, 2.1), {"library": library(2.0)})
    in_tf32 = Row("optimized/tf32", "baseline", "faster", "", 2.0, (1.9, 2.1), libraries, "tf32")
    pair = pair_result(rows=[plain, in_tf32])
    assert summary.fastest_library(pair, plain) == (2.0, "library")
    assert summary.fastest_library(pair, in_tf32) == (4.0, "library/tf32"), "the other one does more"
    assert summary.fastest_library(pair, replace(plain, vs_library={})) is None


def test_a_run_is_written_as_markdown(tmp_path):
    pairs = [graded("a", 1.5), graded("b", 0.8), graded("c", 1.0)]
    summary.save_markdown(record(*pairs), tmp_path / "table.md")
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert text.startswith("*NVIDIA H200, 2026-01-02*\n\n| pair | size | variant | verdict |")
    assert [row[:4] for row in rows_of(text)[1:]] == [[name, "default", "optimized", "faster"] for name in "abc"]
    assert [row[5] for row in rows_of(text)] == [
        "time ± half its interquartile range",
        *["2.00 ms ±0.0% -> 1.00 ms ±0.0%"] * 3,
    ]
    assert text.endswith(
        "- worst pair, by its best variant, against its fastest library: b default optimized, 0.800x\n"
    )


# Tables


RATE = ["8.00e-06 GB/s"]  # 8 bytes in 1 ms


def named(name):
    return Path(f"/somewhere/recorded/{name}/ch1.json")


def rows_of(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and "---" not in line
    ]


def test_a_recorded_row_is_shown_with_device_date_versions_and_file():
    text = summary.by_device([(named("nvidia_h200"), record(pair_result(ratio=2.5)))], {"double": HASH})
    assert "NVIDIA H200, 2026-01-02 (torch 2.11.0)" in text
    assert "(/recorded/nvidia_h200/ch1.json)" in text
    assert rows_of(text)[1:] == [
        [
            "double",
            "optimized",
            "faster",
            "2.50x [2.48, 2.52]",
            "2.50 ms -> 1.00 ms",
            "8.00e-06 GB/s",
            "50% / 25% dram",
            "",
        ]
    ]


@pytest.mark.parametrize("hashes", [{"other": HASH, "double": "changed"}, {"other": HASH}])
def test_a_row_whose_pair_has_changed_is_stale_and_shows_no_figure(hashes):
    text = summary.by_device([(named("h200"), record(pair_result("double"), pair_result("other", ratio=3.0)))], hashes)
    _, stale, fresh = rows_of(text)
    assert stale[:2] == ["double", "optimized"]
    assert stale[2].startswith("stale")
    assert stale[3:] == ["", "", "", "", ""]
    assert not re.search(r"\d", "".join(stale))
    assert fresh[2:4] == ["faster", "3.00x [2.97, 3.03]"]


def test_rungs_and_failures_have_their_rows():
    rows = [
        Row("optimized/b", "baseline", "faster", "", 2.0, (1.9, 2.1)),
        Row("optimized/b", "optimized", "same", "", 1.0, (0.99, 1.01)),
        Row("optimized/c", "baseline", "skipped", "needs 2 GPUs"),
    ]
    arms = {label: arm() for label in ("baseline", "optimized", "optimized/b")}
    found = rows_of(summary.by_device([(named("h200"), record(pair_result(rows=rows, arms=arms)))], {"double": HASH}))
    assert [cells[1:4] for cells in found[1:]] == [
        ["b", "faster", "2.00x [1.90, 2.10]"],
        ["b vs optimized", "same", "1.00x [0.990, 1.01]"],
        ["c", "skipped", ""],
    ]


def test_every_device_has_its_table_and_no_record_says_so():
    records = [
        (named("b200"), record(pair_result(ratio=4.0), name="NVIDIA B200")),
        (named("h200"), record(pair_result())),
    ]
    text = summary.by_device(records, {"double": HASH})
    assert text.index("NVIDIA B200") < text.index("4.00x [") < text.index("NVIDIA H200") < text.index("2.00x [")
    assert summary.by_device([], {}) == "Nothing is recorded yet."


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one chapter with one pair; `course(record)` is what is recorded of it."""
    pair = one_pair(tmp_path / "ch1")
    records = []
    monkeypatch.setattr(report, "ROOT", tmp_path)
    monkeypatch.setattr(report, "recorded", lambda chapter: records)
    monkeypatch.setattr(report, "newest", list)

    def keep(*results):
        records[:] = [(named("h200"), record(*results))]
        return pair

    return keep


BEFORE, AFTER = "# Title\n\n| a table | of ours |\n\n", "\n\nThe end.\n"


def readme(content="old", chapter="ch1"):
    return f"{BEFORE}{report.MARKER.format(chapter)}\n{content}\n{report.END}{AFTER}"


def test_only_what_lies_between_the_markers_is_made_anew(course):
    pair = course(pair_result(ratio=2.5))
    course(pair_result(ratio=2.5, source_hash=source_hash(pair)))
    text = report.filled_in(readme())
    assert text.startswith(BEFORE + report.MARKER.format("ch1"))
    assert text.endswith(report.END + AFTER)
    assert "2.50x [2.48, 2.52]" in text
    assert "old" not in text
    assert report.filled_in(text) == text
    assert report.filled_in("no markers") == "no markers"


def test_a_pair_that_changes_turns_its_row_stale(course, tmp_path):
    pair = course(pair_result())
    course(pair_result(source_hash=source_hash(pair)))
    assert "stale" not in report.filled_in(readme())
    one_pair(tmp_path / "ch1", version("return x + x + w_shift"))
    text = report.filled_in(readme())
    assert "stale: the pair has changed since" in text
    assert "2.00x" not in text
    one_pair(tmp_path / "ch1", version().replace("Double", "Twice"))  # words are not what was measured
    assert "stale" not in report.filled_in(readme())


def test_the_command_writes_every_readme(course, tmp_path, monkeypatch, capsys):
    pair = course(pair_result())
    course(pair_result(source_hash=source_hash(pair)))
    (tmp_path / "common").mkdir()
    paths = [tmp_path / folder / "README.md" for folder in (".", "common", "ch1")]
    for path in paths:
        path.write_text(readme() + f"{report.CALIBRATION}\nold\n{report.END}\n")
    assert report.main() == 0
    for path in paths:
        assert "2.00x [1.98, 2.02]" in path.read_text()
        assert path.read_text().endswith(f"{report.CALIBRATION}\n{report.NOTHING}\n{report.END}\n")
    (tmp_path / "ch1" / "optimized_double.py").write_text("def def")
    assert report.main() == 2
    assert re.fullmatch(r".*optimized_double\.py:1: syntax error.*\n", capsys.readouterr().err)


CHAPTERS = [folder.name for folder in sorted(ROOT.glob("ch[0-9]*"))]
MARKERS = {
    "README.md": [report.MARKER.format("ch1")],  # and links to the others
    "common/README.md": [report.CALIBRATION],
    **{f"{chapter}/README.md": [report.MARKER.format(chapter)] for chapter in CHAPTERS},
}
MARKERS["ch3/README.md"].append(report.SIZES_MARKER.format("ch3"))


@pytest.mark.parametrize("path", MARKERS)
def test_the_committed_tables_are_what_is_recorded(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert [marker for marker in MARKERS[path] if marker not in text] == []
    assert report.filled_in(text) == text, "make readme writes the tables anew"


def test_every_readme_with_tables_is_written():
    assert {str(path.relative_to(ROOT)) for path in report.readmes()} == set(MARKERS)


# At all sizes


@pytest.fixture
def by_class(course, tmp_path, monkeypatch):
    """A README's tables by class; `by_class(*records)` after these were recorded of a course of one pair."""
    monkeypatch.setattr(recording, "FOLDER", tmp_path / "recorded")
    pair = course()

    def filled(*records):
        for each in records:
            keep_record(each, tmp_path / "recorded")
        marker = report.SIZES_MARKER.format("ch1")
        text = report.filled_in(f"{BEFORE}{marker}\nold\n{report.END}{AFTER}")
        assert text.startswith(BEFORE + marker + "\n")
        assert text.endswith(f"\n{report.END}{AFTER}")
        assert report.filled_in(text) == text
        return text.removeprefix(BEFORE + marker + "\n").removesuffix(f"\n{report.END}{AFTER}")

    filled.hash = source_hash(pair)
    return filled


def test_every_class_but_the_default_has_a_folded_table(by_class):
    sizes = ("default", "small/a", "large/a", "large/fp16")
    text = by_class(record(*(pair_result(size=size, source_hash=by_class.hash) for size in sizes)))
    folded = re.findall(r"<details><summary>(.*?)</summary>\n\n(.*?)\n\n</details>", text, flags=re.DOTALL)
    assert [title for title, _ in folded] == [
        "small, NVIDIA H200, 2026-01-02: 1 row",
        "large, NVIDIA H200, 2026-01-02: 2 rows",
    ]
    for (_, table), file in zip(folded, ("ch1_small.json", "ch1_large.json"), strict=True):
        first, empty, *lines = table.splitlines()
        assert first.startswith("Recorded on NVIDIA H200, 2026-01-02 (torch 2.11.0)")
        assert f"(/recorded/nvidia_h200/{file})" in first
        assert empty == ""
        assert lines[0].startswith("| pair | size | variant | verdict |")
    heading, *rows = rows_of(folded[1][1])
    assert [row[:3] for row in rows] == [["double", "large/a", "optimized"], ["double", "large/fp16", "optimized"]]
    assert [row[5] for row in rows] == ["2.00 ms ±0.0% -> 1.00 ms ±0.0%"] * 2
    assert {len(row) for row in rows} == {len(heading)}
    assert "default" not in text


def test_best_and_worst_of_a_class_are_of_what_has_not_changed_since(by_class):
    rows = {name: graded("double", ratio).rows for name, ratio in (("a", 1.5), ("b", 0.8), ("c", 1.0), ("d", 9.0))}
    pairs = [pair_result(size=f"large/{name}", rows=rows[name], source_hash=by_class.hash) for name in "abc"]
    stale = pair_result(size="large/d", rows=rows["d"])
    text = by_class(record(*pairs, stale))
    assert "- best pair, by its best variant, against its fastest library: double large/a optimized, 1.50x\n" in text
    assert "- worst pair, by its best variant, against its fastest library: double large/b optimized, 0.800x\n" in text
    (row,) = [row for row in rows_of(text) if row[1] == "large/d"]
    assert row[:3] == ["double", "large/d", "optimized"]
    assert row[3].startswith("stale")
    assert set(row[4:]) == {""}
    assert "9.0" not in text


def test_a_class_has_a_table_for_each_device_the_newest_first(by_class):
    pair = pair_result(size="large", source_hash=by_class.hash)
    text = by_class(record(pair), record(pair, name="NVIDIA B200", date="2026-05-06T00:00:00+00:00"))
    titles = re.findall("<summary>(.*?)</summary>", text)
    assert titles == ["large, NVIDIA B200, 2026-05-06: 1 row", "large, NVIDIA H200, 2026-01-02: 1 row"]


def with_sizes(folder, *sizes):
    """Gives both versions of the course's pair these sizes as well."""
    more = "".join(f', "{size}": {{}}' for size in sizes)
    for path in folder.glob("*_double.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(SIZES = {.*)}", rf"\1{more}}}", text), encoding="utf-8")


def test_what_a_record_of_a_class_lacks_is_named(by_class, tmp_path):
    with_sizes(tmp_path / "ch1", "large/a", "large/b", "large/c", "small")
    text = by_class(record(pair_result(size="large/b", source_hash=by_class.hash)))
    assert re.findall("- not recorded: .*", text) == ["- not recorded: double large/a, large/c"]


def test_a_pair_that_a_record_lacks_is_named():
    text = summary.by_device([(named("h200"), record(pair_result()))], {"double": HASH, "triple": HASH})
    assert text.endswith("\n\nNot recorded: triple.")


def test_several_files_of_a_device_are_one_table_that_names_each(by_class, tmp_path):
    def of(name, size, date):
        return record(pair_result(name, size=size, source_hash=by_class.hash), date=date)

    old, new = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
    records = [of("triple", "default", new), of("double", "default", new), of("half", "default", old)]
    files = [(Path(f"/somewhere/gpu/{number}.json"), each) for number, each in enumerate(records)]
    names = ("double", "triple", "half", "fourfold", "fivefold")
    text = summary.by_device(files, dict.fromkeys(names, by_class.hash))
    assert [row[0] for row in rows_of(text)] == ["pair", "double", "half", "triple"]
    assert text.startswith(
        "Recorded on NVIDIA H200, 2026-01-02 (torch 2.11.0): [gpu/0.json](/recorded/gpu/0.json) (triple), "
        "[gpu/1.json](/recorded/gpu/1.json) (double)\n\n"
        "Recorded on NVIDIA H200, 2026-01-01 (torch 2.11.0): [gpu/2.json](/recorded/gpu/2.json) (half)\n\n| pair |"
    )
    assert text.endswith("\n\nNot recorded: fourfold, fivefold.")
    with_sizes(tmp_path / "ch1", "large/a", "large/b", "large/c")
    keep_record(of("double", "large/c", new), tmp_path / "recorded", is_part=True)
    text = by_class(of("double", "large/a", old))
    assert re.findall("<summary>(.*?)</summary>", text) == ["large, NVIDIA H200, 2026-01-01 and 2026-01-02: 2 rows"]
    assert {row[1] for row in rows_of(text)[1:]} == {"large/a", "large/c"}
    assert re.findall("- not recorded: .*", text) == ["- not recorded: double large/b"]


def test_where_only_the_default_is_recorded_there_is_nothing_at_all_sizes(by_class):
    assert by_class() == report.NOTHING
    assert by_class(record(pair_result(source_hash=by_class.hash))) == report.NOTHING


# What was recorded, beside what this machine cannot measure

PAIR = pair_result(source_hash=HASH)
CHECKED = Row("optimized", "baseline", "checked")
WHERE = "NVIDIA H200, 2026-01-02"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("faster 3.00x [2.97, 3.03]", WHERE)),
        ({"source_hash": "changed"}, ("stale", WHERE)),
        ({"name": "other"}, ("", "")),
        ({"chapter": "ch2"}, ("", "")),
        ({"rows": [Row("optimized/b", "baseline", "faster", "", 3.0, (2.9, 3.1))]}, ("", "")),
        ({"rows": [Row("optimized", "baseline", "died", "killed")]}, ("died ", WHERE)),
    ],
)
def test_a_record_is_asked_for_the_same_row_of_the_same_pair(changes, expected):
    assert beside.lookup(PAIR, CHECKED, [record(pair_result(ratio=3.0, **changes))]) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("large/a", ("faster 5.00x [4.95, 5.05]", "NVIDIA H200, 2026-02-02")),
        ("large/b", ("", "")),
        ("default", ("faster 3.00x [2.97, 3.03]", WHERE)),
        ("cpu", ("faster 3.00x [2.97, 3.03] (default)", WHERE)),
    ],
)
def test_a_size_stands_beside_the_same_size_and_a_cpus_beside_the_default(size, expected):
    records = [
        record(pair_result(ratio=3.0)),
        record(pair_result(ratio=5.0, size="large/a"), date="2026-02-02T00:00:00+00:00"),
    ]
    assert beside.lookup(replace(PAIR, size=size), CHECKED, records) == expected


@pytest.fixture
def shown(monkeypatch, tmp_path, capsys):
    """What the console shows of a record of this kind while these records are there."""
    monkeypatch.setattr(recording, "FOLDER", tmp_path)

    def show(kind, *records, size="default"):
        for each in records:
            keep_record(each, tmp_path)
        here = record(pair_result(rows=[CHECKED], arms={}, size=size), kind=kind, name="this machine")
        console.print_record(here, console.make_console())
        return capsys.readouterr().out

    return show


def test_cpu_results_stand_beside_the_newest_record_of_a_gpu_with_its_date(shown):
    on_cpu = record(pair_result(ratio=7.0), kind="cpu", name="A processor", date="2026-06-07T00:00:00+00:00")
    on_b200 = record(pair_result(ratio=5.0), name="NVIDIA B200", date="2026-05-06T00:00:00+00:00")
    out = shown("cpu", on_cpu, on_b200, record(pair_result(ratio=3.0)))
    assert "NVIDIA B200, 2026-05-06" in out
    assert "faster 5.00x [4.95, 5.05]" in out
    assert "7.00x" not in out
    assert "3.00x" not in out


def test_a_size_is_shown_beside_what_is_recorded_of_its_class(shown):
    sizes = record(pair_result(ratio=5.0, size="large/a"), pair_result(ratio=3.0))
    out = shown("cpu", sizes, size="large/a")
    assert "recorded on NVIDIA H200, 2026-01-02" in out
    assert "faster 5.00x [4.95, 5.05]" in out
    assert "3.00x" not in out


def test_a_narrow_console_says_what_is_recorded_below_the_table(shown, monkeypatch):
    monkeypatch.setattr(console, "PLAIN_WIDTH", 60)
    out = shown("cpu", record(pair_result(ratio=5.0, size="large/a")), size="large/a")
    said = "double large/a optimized: recorded on NVIDIA H200, 2026-01-02: faster 5.00x [4.95, 5.05]"
    assert said in out.splitlines()


def test_a_sweep_on_the_console_has_spreads_and_a_single_size_has_none(capsys):
    library = {"library": {"ratio": 0.5, "interval": (0.5, 0.5)}}
    rows = [Row("optimized", "baseline", "faster", "", 2.0, (1.9, 2.1), library)]
    for size, is_shown in (("default", False), ("large/a", True)):
        console.print_record(record(pair_result(size=size, rows=rows)), console.make_console())
        out = capsys.readouterr().out
        assert ("±" in out) is is_shown
        assert ("0.500x D (500 us" in out) is is_shown


def test_a_stale_record_shows_no_figure(shown):
    out = shown("cpu", record(pair_result(ratio=3.0, source_hash="changed")))
    assert "stale" in out
    assert "3.00x" not in out


def test_nothing_recorded_is_shown_beside_a_gpus_own_results(shown):
    assert "3.00x" not in shown("cuda", record(pair_result(ratio=3.0)))


def test_what_a_cpu_recorded_is_not_shown(shown):
    assert "recorded" not in shown("cpu", record(pair_result(ratio=3.0), kind="cpu"))
