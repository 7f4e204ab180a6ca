"""How figures are written: cells, a run as Markdown, what is recorded as a table."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from samples import arm, because, pair_result, record, rows_of

from common.record.outcome import Cause, Finding, Verdict
from common.record.result import Row
from common.show import formats, summary, tables, words
from common.show.console import remarks
from common.show.recorded_column import NO_GPU_RESULTS
from common.show.ways_out import way_out
from tools import recorded_pages


def test_numbers_are_written_in_their_unit():
    seconds = {2.0: "2.00 s", 123.4: "123 s", 4321.0: "4321 s", 1.0: "1.00 s", 0.5: "500 ms", 12.34e-3: "12.3 ms"}
    seconds |= {1e-3: "1.00 ms", 999.4e-6: "999 us", 999.7e-6: "1.00 ms", 64.4e-6: "64.4 us", 1e-6: "1.00 us"}
    seconds |= {0.25e-6: "250 ns", 1.5e-9: "1.50 ns"}
    assert {value: formats.seconds(value) for value in seconds} == seconds
    rates = {4.86e9: "4.86 GB/s", 52.5e9: "52.5 GB/s", 999e9: "999 GB/s", 4.032e12: "4.03 TB/s"}
    assert {value: formats.bandwidth(value) for value in rates} == rates
    peaks = {67.0: "67", 494.5: "494.5", 9258.4: "9258", 9999.6: "10000", 32819.4: "32819"}
    assert {value: formats.four_digits(value) for value in peaks} == peaks
    assert formats.rate(989.5e12, "fp16_flops") == "990 TFLOP/s"
    assert formats.rate(989.5e12, "fp16_flops", formats.four_digits) == "989.5 TFLOP/s"
    assert formats.rate(4.248e12, "dram_bytes") == "4248 GB/s"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Row("optimized", "baseline", "faster", None, 2.3456, (2.2, 2.5)), "2.35x [2.20, 2.50]"),
        (Row("optimized", "baseline", "faster", None, 2.3456, (2.2, 2.5), {}, "bf16"), "2.35x [2.20, 2.50] bf16"),
        (Row("optimized", "baseline", "slower", None, 0.35, (0.3, 0.4)), "0.350x [0.300, 0.400]"),
        (Row("optimized", "baseline", "unsure", because("few blocks"), 1.0, None), "1.00x"),
        (Row("optimized", "baseline", "faster", None, 1234.0, (999.9, 2345.0)), "1234x [1000, 2345]"),
        (Row("optimized", "baseline", "verified"), ""),
    ],
)
def test_a_ratio_is_written_with_its_interval_and_precision(row, text):
    assert tables.ratio(row) == text


def test_time_and_share_of_the_limit_are_the_candidates_own():
    pair = pair_result(ratio=2.5)
    (row,) = pair.rows
    assert tables.times(pair, row) == "2.50 ms -> 1.00 ms"
    assert tables.share(pair, row) == "50 % of the dram limit, 25 % of the datasheet's"
    title, line = (entry.cells for entry in tables.entries_of(pair))
    assert (title["time"], title["% of limit"], title["% of datasheet"]) == ("2.50 ms", "dram 20 %", "10 %")
    assert (line["time"], line["% of limit"], line["% of datasheet"]) == ("1.00 ms", "50 %", "25 %")
    for of_limit, shown in ((0.876, "88 % of the fp32 limit"), (0.0034, "0.3 % of the fp32 limit"), (None, "")):
        no_datasheet = {**pair.arms, "optimized": arm(of_limit=of_limit, of_datasheet=None, limit_by="")}
        assert tables.share(pair_result(arms=no_datasheet, limit_by="fp32_flops"), row) == shown
    invalid = Row("optimized", "baseline", "invalid", because("wrong answer"))
    nothing = pair_result(rows=[invalid], arms={})
    assert tables.times(nothing, invalid) == tables.share(nothing, invalid) == ""
    assert [entry.cells.get("time", "") for entry in tables.entries_of(nothing)] == ["", ""]


@pytest.mark.parametrize(("baseline_s", "said"), [(2.1e-3, []), (1.7e-3, ["by the two medians it is 1.70x"])])
def test_two_times_that_tell_another_ratio_are_named(baseline_s, said):
    row = faster({})  # 2.0 [1.9, 2.1]
    pair = pair_result(rows=[row], arms={"baseline": arm(baseline_s), "optimized": arm(1e-3)})
    assert [words.text(found).partition(": ")[2] for found in tables.remarks(pair, row)] == said


def test_a_line_of_remarks_ends_with_the_way_out():
    row = Row("optimized", "baseline", "invalid", Finding(Cause.DROPS_GRADIENTS))
    (line,) = tables.by_cause([pair_result(rows=[row], arms={})])
    assert line.startswith("its answer carries no gradients") and line.endswith(f" -> {way_out(row.reason)}")


def test_a_grade_says_how_a_library_stands_against_a_variant():
    grades = {1.02: "A+", 1.019: "A", 0.98: "A", 0.979: "B", 0.9: "B", 0.6: "D", 0.49: "F"}
    assert {ratio: tables.grade(ratio) for ratio in grades} == grades


@pytest.mark.parametrize("verdict", tables.VERDICTS)
def test_every_verdict_of_a_record_has_a_word_and_a_place_in_the_tally(verdict):
    row = Row("optimized", "baseline", verdict)
    assert tables.tally([row, row]) == f"2 {tables.word(verdict)}"
    assert {*Verdict} == {*tables.VERDICTS}


def test_a_tally_counts_versions_and_not_their_comparisons_with_each_other():
    rows = [faster({}), faster({}, "optimized/b"), Row("optimized/b", "optimized", "same", None, 1.0, (0.99, 1.01))]
    rows += [Row("optimized/c", "baseline", "slower", None, 0.5, (0.5, 0.5)), Row("optimized/d", "baseline", "crashed")]
    assert tables.tally(rows) == "2 faster, 1 slower, 1 crashed"


def remarked(*findings, name="double", variant="optimized"):
    return pair_result(name, rows=[Row(variant, "baseline", "skipped", found) for found in findings], arms={})


def test_remarks_are_one_line_a_cause_and_a_pair_stands_for_all_of_its_versions():
    rows = [Row(f"optimized/{name}", "baseline", "skipped", because("needs an NVIDIA GPU")) for name in "ab"]
    pairs = [pair_result("one", rows=rows, arms={}), remarked(because("needs an NVIDIA GPU"), name="two")]
    some = [*rows[:1], Row("optimized/c", "baseline", "verified")]
    pairs.append(pair_result("three", rows=some, arms={}))
    assert tables.by_cause(pairs) == ["needs an NVIDIA GPU: one, two, three a"]


# A run


def library(ratio, **more):
    return {"ratio": ratio, "interval": (ratio, ratio), **more}


def faster(libraries, variant="optimized", precision=""):
    return Row(variant, "baseline", "faster", None, 2.0, (1.9, 2.1), libraries, precision)


def graded(name, ratio, precision=""):
    return pair_result(name, rows=[faster({"library": library(ratio)}, precision=precision)])


THREE = [graded("a", 1.5), graded("b", 0.8), graded("c", 1.0)]


def test_the_best_and_the_worst_against_a_library_are_named():
    best, worst = summary.best_and_worst(record(*THREE, graded("d", 9.0, "bf16")))
    assert best == "best pair, by its best variant, against its fastest library: a default optimized, 1.50x"
    assert worst == "worst pair, by its best variant, against its fastest library: b default optimized, 0.800x"
    assert summary.best_and_worst(record(*THREE[:2])) == []


@pytest.mark.parametrize(
    ("row", "is_graded"),
    [
        (faster({"library": library(0.221)}), True),
        (faster({"library/tf32": library(2.0, precision="tf32")}, precision="tf32"), True),
        (faster({"library": library(2.0)}, precision="tf32"), False),
        (faster({"yardstick/add": library(0.1)}), False),
        (faster({}), False),
        (replace(faster({"library": library(2.0)}), verdict="unsure"), False),
    ],
)
def test_the_letters_of_the_library_column_are_explained_where_there_are_any(row, is_graded):
    shown = remarks(record(pair_result(rows=[row])), NO_GPU_RESULTS, [])
    legend = "vs library: the library's time over the version's, and its grade: A+ from 1.02x, A from 0.98x"
    assert [text.startswith(legend) and text.endswith("F below") for text in shown][:1] == [True] * is_graded
    words_ = tables.libraries(pair_result(rows=[row]), row).replace(",", "").split()
    assert bool({"A+", "A", "B", "C", "D", "F"} & {*words_}) is is_graded


def test_a_library_that_was_too_short_to_be_timed_may_be_the_fastest():
    pair = graded("d", 9.0)
    assert summary.fastest_library(pair, pair.rows[0]) == (9.0, "library")
    pair.arms["library/short"] = arm(1e-6)
    assert summary.fastest_library(pair, pair.rows[0]) is None
    assert summary.best_and_worst(record(*THREE, pair)) == summary.best_and_worst(record(*THREE))


def test_the_fastest_library_is_of_those_that_do_the_same_work():
    libraries = {"library": library(3.0), "library/tf32": library(4.0, precision="tf32"), "yardstick/add": library(0.1)}
    plain, in_tf32 = faster({"library": library(2.0)}), faster(libraries, "optimized/tf32", "tf32")
    pair = pair_result(rows=[plain, in_tf32])
    assert summary.fastest_library(pair, plain) == (2.0, "library")
    assert summary.fastest_library(pair, in_tf32) == (4.0, "library/tf32"), "the other one does more"
    assert summary.fastest_library(pair, replace(plain, vs_library={})) is None


# What is recorded


def by_device(*records, pairs=(), stale=()):
    """What is said of records by the first words of their devices' names; `stale`: the pairs that have changed."""
    files = [(Path("/recorded", each.environment["device"]["name"].lower(), "ch1.json"), each) for each in records]
    return recorded_pages.tables_by_device(files, lambda pair: pair.name not in stale, pairs)


def test_a_recorded_row_is_shown_with_device_date_versions_file_and_page():
    text = by_device(record(pair_result(ratio=2.5), name="H200"))
    assert text.startswith("Recorded on H200, 2026-01-02 (torch 2.11.0): [h200/ch1.json](/recorded/h200/ch1.json)\n\n|")
    assert text.endswith("|\n\nAll sizes, with the spread of the times: [h200/ch1.md](/recorded/h200/ch1.md).")
    title = ["**double**", "", "", "", "2.50 ms", "dram 20 %", "800 GB/s", "10 %"]  # 2 GB in 2.5 ms
    optimized = ["optimized", "faster", "2.50x", "[2.48, 2.52]", "1.00 ms", "50 %", "2000 GB/s", "25 %"]
    assert rows_of(text)[1:] == [title, optimized]


def test_a_row_whose_pair_has_changed_is_left_out_and_named():
    text = by_device(record(pair_result("double"), pair_result("other", ratio=3.0)), stale=["double"])
    _, title, fresh = rows_of(text)
    assert "\n\nLeft out, because the pair has changed since: double.\n\n" in text
    assert title[0] == "**other**" and fresh[1:4] == ["faster", "3.00x", "[2.97, 3.03]"]


def test_a_pair_or_a_variant_that_a_record_lacks_is_named():
    labels = {"triple": ["optimized"], "double": ["baseline", "optimized", "optimized/twice"], "zero": ["optimized"]}
    pairs = [
        SimpleNamespace(name=name, versions=[SimpleNamespace(label=label) for label in of])
        for name, of in labels.items()
    ]
    assert "\n\nNot recorded: triple, zero, double twice.\n\n" in by_device(record(pair_result()), pairs=pairs)


def test_a_file_of_which_several_pairs_came_is_named_once():
    """A chapter's page asks once for each pair of a file; other software is another line."""
    path = Path("recorded/h200/ch1.json")
    parts = [(path, record(*map(pair_result, names))) for names in (["double"], ["halve", "halve"], ["double"])]
    (line,) = tables.source(*parts, (path.with_stem("ch1_large"), parts[1][1])).splitlines()
    assert line.endswith(
        ": [h200/ch1.json](/recorded/h200/ch1.json) (double, halve), "
        "[h200/ch1_large.json](/recorded/h200/ch1_large.json) (halve)"
    )
    assert tables.source(parts[0]).endswith(" [h200/ch1.json](/recorded/h200/ch1.json)")
