"""The table on terminals of several widths: every line whole, from what was recorded and from a run on a CPU."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from samples import arms_for, because, launching, pair_result, record

from common.pairs.pair import ROOT, discover
from common.record.record_file import combine_records, load_record
from common.record.result import Row
from common.record.store import chapter_records
from common.show import console
from common.show.layout import Entry, layout
from common.show.tables import HEADINGS, VERDICTS

DEVICES = ("nvidia_h200", "nvidia_h100_80gb_hbm3")
CHAPTERS = [f"ch{number}" for number in range(1, 7)]
WIDTHS = (40, 60, 80, 100, 160)


@pytest.fixture
def printed(capsys, monkeypatch):
    """printed(record, width): the lines that a terminal of this width shows of it."""

    def show(shown, width, pairs=()):
        monkeypatch.setenv("COLUMNS", str(width))
        console.print_record(shown, console.make_console(), pairs)
        return capsys.readouterr().out.splitlines()

    return show


def of_device(chapter, device):
    return combine_records([each for path, each in chapter_records(chapter) if path.parent.name == device])


def table(lines):
    """The lines of the versions, between the headings and the tally."""
    ends = next(number for number, line in enumerate(lines) if re.match(r"\d+ [a-z]", line))
    return [line for line in lines[2:ends] if line.startswith("  ")]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("device", DEVICES)
def test_what_gpus_recorded_fits_every_terminal_with_each_version_on_one_line(device, width, printed):
    for chapter in CHAPTERS:
        found = of_device(chapter, device)
        lines = printed(found, width)
        assert max(map(cell_len, lines)) <= width
        assert not any("…" in line for line in lines)
        rows = [row for pair in found.pairs for row in pair.rows]
        assert len(table(lines)) == len(rows)


@pytest.mark.parametrize("device", DEVICES)
def test_80_columns_hold_verdict_speedup_interval_time_and_share_of_the_limit(device, printed):
    for chapter in CHAPTERS:
        found = of_device(chapter, device)
        lines = printed(found, 80)
        assert [heading for heading in HEADINGS[:5] if heading not in lines[1]] == []
        rows = [row for pair in found.pairs for row in pair.rows]
        for row, line in zip(rows, table(lines), strict=True):
            assert VERDICTS[row.verdict].word in line
            if row.ratio and row.versus == "baseline":
                assert re.search(r" [\d.]+x +\[[\d.]+, [\d.]+\]( \w+)? +[\d.]+ [mun]?s( +(\w+ )?[\d.]+ %)?$", line)


def test_wider_terminals_have_more_columns_and_narrower_ones_fewer(printed):
    found = of_device("ch3", "nvidia_h200")
    headings = {width: printed(found, width)[1] for width in (40, 60, 80, 100, 160)}
    assert "speedup" in headings[40] and "interval" not in headings[40]
    assert "interval" in headings[60] and "limit" not in headings[60]
    assert "throughput" in headings[100] and "throughput" not in headings[80]
    assert "vs library" in headings[160] and "host time" in headings[160]


VERSUS = Row("optimized/b", "optimized", "slower", None, 0.5, (0.49, 0.51), {}, "tf32")
EVERY = [
    *(Row(f"optimized/{verdict.replace(' ', '_')}", "baseline", verdict, because("a reason")) for verdict in VERDICTS),
    Row("optimized", "baseline", "faster", None, 1234.5, (1200.0, 1300.0), {}, "bf16"),
    Row("optimized/b", "baseline", "unsure", because("noise"), 617.0, (600.0, 650.0), {}, "tf32"), VERSUS,
]  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_every_verdict_a_precision_and_a_further_comparison_have_their_line(width, printed):
    rows = [row for row in EVERY if row.ratio or row.verdict not in ("faster", "slower", "same", "unsure")]
    lines = printed(record(pair_result("x" * 21, rows=rows, arms=arms_for([row for row in rows if row.ratio]))), width)
    assert max(map(cell_len, lines)) <= width
    words = [VERDICTS[row.verdict].word for row in rows]
    assert [word for word, line in zip(words, table(lines), strict=True) if f" {word} " not in f"{line} "] == []
    assert (sum("bf16" in line for line in lines) == 1) is (width >= 60)
    assert [line.split()[:3] for line in lines if line.startswith("    ")][1:] == [["vs", "optimized", "slower"]]


def test_a_name_that_is_too_long_has_a_line_of_its_own(printed):
    name = "of_many_words_" * 6
    rows = [replace(pair_result().rows[0], variant=f"optimized/{name}")]
    arms = pair_result().arms
    lines = printed(record(pair_result(rows=rows, arms={**arms, f"optimized/{name}": arms["optimized"]})), 80)
    at = lines.index(f"  {name}")
    assert lines[at + 1].split()[:4] == ["faster", "2.00x", "[1.98,", "2.02]"]


def test_a_long_title_keeps_its_figures_below_it():
    entries = [Entry("pair " * 30, {"time": "1.00 ms"}, is_title=True), Entry("optimized", {"time": "2.00 ms"})]
    _, title, figures, line = (text.plain for text in layout(HEADINGS, entries, 40))
    assert title == "pair " * 30
    assert (figures.split(), line.split()) == (["1.00", "ms"], ["optimized", "2.00", "ms"])


@pytest.mark.parametrize("width", [40, 220])
def test_a_single_column_stands_beside_the_names(width):
    lines = [text.plain for text in layout(HEADINGS, [Entry("optimized", {"verdict": "verified"})], width)]
    assert lines == ["             verdict", "  optimized  verified"]


def test_wide_characters_keep_columns_in_line():
    entries = [Entry("配列", {"time": "1.00 ms"}), Entry("plain", {"time": "10.0 ms"})]
    _, *lines = (text.plain for text in layout(HEADINGS, entries, 40))
    assert len({cell_len(line) for line in lines}) == 1


@pytest.mark.rest
def test_a_fresh_record_of_a_cpu_fits_with_what_a_gpu_recorded(tmp_path, printed):
    with launching(tmp_path) as launch:
        running = launch("--chapter", 1, "--only", "[abc]*", "--fast", "--device", "cpu", "--json", tmp_path / "r.json")
        assert running.wait() == 0, running.communicate()
    found = load_record(tmp_path / "r.json")
    for width in WIDTHS:
        lines = printed(found, width, discover(ROOT / "ch1"))
        assert max(map(cell_len, lines)) <= width
        assert ("verified, H200" in "\n".join(lines)) and any(" H200 " in line for line in lines)


def test_terminals_too_narrow_are_refused_before_anything_is_measured(monkeypatch, capsys):
    from benchmark import main

    monkeypatch.setenv("COLUMNS", "39")
    assert main(["--list"]) == 2
    assert capsys.readouterr().err == (
        "benchmark.py: 39 columns are too few: widen the terminal, or set COLUMNS, to 40 or more\n"
    )
