"""What was recorded on a GPU stands in the table of a machine that has none."""

import pytest
from samples import because, one_pair, pair_result, record, version

from common.pairs.source import source_hash
from common.record.result import Row
from common.record.store import keep_record
from common.show import console

CHECKED = Row("optimized", "baseline", "verified")
SIZES = {"check": {"n": 127}, "default": {"n": 8}, "cpu": {"n": 4}, "large/a": {"n": 8}, "large/b": {"n": 8}}


@pytest.fixture
def shown(monkeypatch, tmp_path, capsys):
    """shown(*records): what the console says of a pair that was verified on a CPU, while these records are there."""
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    text = version(sizes=SIZES)
    pair = one_pair(tmp_path / "ch1", text, text)

    def show(*records, size="default", kind="cpu", rows=(CHECKED,), arms=()):
        for kept in records:
            keep_record(kept, tmp_path / "recorded")
        here = pair_result(rows=list(rows), arms=dict(arms), size=size, source_hash=source_hash(pair))
        console.print_record(record(here, kind=kind, name="this machine"), console.make_console(), [pair])
        return capsys.readouterr().out

    show.of = lambda ratio=3.0, **fields: pair_result(ratio=ratio, **{"source_hash": source_hash(pair), **fields})
    return show


def lines(text):
    """The lines of the table that stand for versions, as lists of words."""
    return [line.split() for line in text.splitlines() if line.startswith("  ") and line.strip()][1:]


RECORDED = ["optimized", "verified,", "H200", "3.00x", "[2.97,", "3.03]", "1.00", "ms", "50", "%"]
NOT_RECORDED = ["optimized", "verified"]


@pytest.mark.parametrize(
    ("changes", "expected", "is_stale"),
    [
        ({}, RECORDED, False),
        ({"source_hash": "changed"}, NOT_RECORDED, True),
        ({"sizes": {"n": 9}}, NOT_RECORDED, True),
        ({"chapter": "ch2"}, NOT_RECORDED, False),
        ({"rows": [Row("optimized/b", "baseline", "faster", None, 3.0, (2.9, 3.1))]}, NOT_RECORDED, False),
        (
            {"rows": [Row("optimized", "baseline", "crashed", because("killed"))], "arms": {}, "noise_floor": None},
            NOT_RECORDED,
            False,
        ),
    ],
)
def test_what_cannot_be_timed_here_stands_with_what_a_gpu_recorded_of_the_same_row(changes, expected, is_stale, shown):
    out = shown(record(shown.of(**changes)))
    assert [line[: len(expected)] for line in lines(out)] == [expected]
    assert ("changed since recorded on H200: double" in out) is is_stale
    assert ("H200: recorded on NVIDIA H200, 2026-01-02" in out) is (expected is RECORDED)


def test_what_is_timed_here_keeps_its_figures_and_has_those_of_the_gpu_beside_them(shown):
    (row,) = pair_result().rows
    out = shown(record(shown.of()), rows=[row], arms=pair_result().arms)
    assert lines(out)[0][:4] == ["optimized", "faster", "2.00x", "[1.98,"]
    assert "H200 3.00x [2.97, 3.03]" in out


@pytest.mark.parametrize(("size", "ratio"), [("large/a", "5.00x"), ("large/b", ""), ("cpu", "3.00x")])
def test_a_size_has_what_is_recorded_of_it_and_a_cpus_that_of_the_default(size, ratio, shown):
    out = shown(record(shown.of(5.0, size="large/a"), shown.of()), size=size)
    assert (lines(out)[0][2:4] == ["H200", ratio]) is bool(ratio)


def test_a_gpu_and_what_a_cpu_recorded_have_no_such_figures(shown):
    assert "recorded" not in shown(record(shown.of(), kind="cpu"))
    assert "3.00x" not in shown(record(shown.of()), kind="cuda")
