"""The table on terminals of several widths: every line whole, from what was recorded and from a run on a CPU."""

import re
from functools import cache

import pytest
from rich.cells import cell_len
from samples import arms_for, because, pair_result, record

from common.record.files import RECORDED
from common.record.record_file import combine_records
from common.record.result import Row
from common.record.store import chapter_records
from common.show import console
from common.show.tables import VERDICTS

DEVICES = ("nvidia_h200", "nvidia_h100_80gb_hbm3")
WIDTHS = (40, 60, 80, 160)


@pytest.fixture
def printed(capsys, monkeypatch):
    """printed(record, width): the lines that a terminal of this width shows of it."""

    def show(shown, width, pairs=()):
        monkeypatch.setenv("COLUMNS", str(width))
        console.print_record(shown, console.make_console(), pairs)
        return capsys.readouterr().out.splitlines()

    return show


@cache
def of_device(chapter, device):
    return combine_records([each for path, each in chapter_records(chapter) if path.parent.name == device])


def table(lines):
    """The lines of the versions, between the headings and the tally."""
    ends = next(number for number, line in enumerate(lines) if re.match(r"\d+ [a-z]", line))
    return [line for line in lines[2:ends] if line.startswith("  ")]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("device", DEVICES)
def test_what_gpus_recorded_fits_every_terminal_with_each_version_on_one_line(device, width, printed, committed):
    chapters = [path.stem for path in (RECORDED / device).glob("ch[0-9].json")]
    assert len(chapters) >= 6
    for chapter in chapters:
        found = of_device(chapter, device)
        lines = printed(found, width)
        assert max(map(cell_len, lines)) <= width
        assert not any("…" in line for line in lines)
        rows = [row for pair in found.pairs for row in pair.rows]
        assert len(table(lines)) == len(rows)


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


def test_terminals_too_narrow_are_refused_before_anything_is_measured(monkeypatch, capsys):
    from benchmark import main

    monkeypatch.setenv("COLUMNS", "39")
    assert main(["--list"]) == 2
    assert capsys.readouterr().err == (
        "benchmark.py: 39 columns are too few: widen the terminal, or set COLUMNS, to 40 or more\n"
    )
