"""What was recorded on a GPU has a column in the table of a machine that has none."""

import pytest
from samples import one_pair, pair_result, record, version

from common.pairs.source import source_hash
from common.record.archive import keep_record
from common.record.result import Row
from common.show import console

CHECKED = Row("optimized", "baseline", "verified")
SIZES = {"check": {"n": 127}, "default": {"n": 8}, "cpu": {"n": 4}, "large/a": {"n": 8}, "large/b": {"n": 8}}
WHERE = "recorded on NVIDIA H200, 2026-01-02"


@pytest.fixture
def shown(monkeypatch, tmp_path, capsys):
    """shown(*records): what the console says of a pair that was verified on a CPU, while these records are there."""
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    text = version(sizes=SIZES)
    pair = one_pair(tmp_path / "ch1", text, text)

    def show(*records, size="default", kind="cpu"):
        for each in records:
            keep_record(each, tmp_path / "recorded")
        here = pair_result(rows=[CHECKED], arms={}, size=size, source_hash=source_hash(pair))
        console.print_record(record(here, kind=kind, name="this machine"), console.make_console(), [pair])
        return " ".join(capsys.readouterr().out.split())

    show.of = lambda ratio=3.0, **fields: pair_result(ratio=ratio, **{"source_hash": source_hash(pair), **fields})
    return show


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "faster 3.00x [2.97, 3.03]"),
        ({"source_hash": "changed"}, "stale"),
        ({"sizes": {"n": 9}}, "stale"),
        ({"name": "other"}, ""),
        ({"chapter": "ch2"}, ""),
        ({"rows": [Row("optimized/b", "baseline", "faster", "", 3.0, (2.9, 3.1))]}, ""),
        ({"rows": [Row("optimized", "baseline", "died", "killed")], "arms": {}, "noise_floor": None}, "died"),
    ],
)
def test_a_record_is_asked_for_the_same_row_of_the_same_pair(changes, expected, shown):
    out = shown(record(shown.of(**changes)))
    assert out.endswith(f"double default optimized verified {expected}".rstrip())
    assert (WHERE in out) is bool(expected)


@pytest.mark.parametrize(
    ("size", "expected"),
    [("large/a", "faster 5.00x [4.95, 5.05]"), ("large/b", ""), ("cpu", "faster 3.00x [2.97, 3.03] (default)")],
)
def test_a_size_has_what_is_recorded_of_it_and_a_cpus_that_of_the_default(size, expected, shown):
    out = shown(record(shown.of(5.0, size="large/a"), shown.of()), size=size)
    assert out.endswith(f"double {size} optimized verified {expected}".rstrip())


def test_the_newest_record_of_a_gpu_is_shown_with_its_date(shown):
    on_cpu = record(shown.of(7.0), kind="cpu", name="A processor", date="2026-06-07T00:00:00+00:00")
    out = shown(on_cpu, record(shown.of(5.0), name="NVIDIA B200", date="2026-05-06T00:00:00+00:00"), record(shown.of()))
    assert "recorded on NVIDIA B200, 2026-05-06 " in out
    assert out.endswith("faster 5.00x [4.95, 5.05]")
    assert "3.00x" not in out


def test_a_narrow_console_says_what_is_recorded_below_the_table(shown, monkeypatch):
    monkeypatch.setattr(console, "PLAIN_WIDTH", 60)
    out = shown(record(shown.of(5.0, size="large/a")), size="large/a")
    assert out.endswith(f" double large/a optimized: {WHERE}: faster 5.00x [4.95, 5.05]")


def test_a_narrow_console_cuts_nothing_off(capsys, monkeypatch):
    monkeypatch.setattr(console, "PLAIN_WIDTH", 80)
    library = {"library": {"ratio": 0.5, "interval": (0.5, 0.5)}}
    rows = [Row("optimized", "baseline", "faster", "", 2.0, (1.99, 2.01), library)]
    console.print_record(record(pair_result(rows=rows)), console.make_console())
    out = capsys.readouterr().out
    assert "…" not in out and " faster " in out and " 2.00x " in out


def test_a_sweep_on_the_console_has_spreads_and_a_single_size_has_none(capsys):
    library = {"library": {"ratio": 0.5, "interval": (0.5, 0.5)}}
    rows = [Row("optimized", "baseline", "faster", "", 2.0, (1.9, 2.1), library)]
    for size, is_shown in (("default", False), ("large/a", True)):
        console.print_record(record(pair_result(size=size, rows=rows)), console.make_console())
        out = capsys.readouterr().out
        assert ("±" in out) is is_shown
        assert ("0.500x D (500 us" in out) is is_shown


def test_a_gpu_and_what_a_cpu_recorded_have_no_such_column(shown):
    assert "recorded" not in shown(record(shown.of(), kind="cpu"))
    assert "3.00x" not in shown(record(shown.of()), kind="cuda")
