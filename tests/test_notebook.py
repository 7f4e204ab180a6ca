"""What the notebooks show: a pair's diff, its calls counted, recorded results, a guess beside a measurement."""

from pathlib import Path

import pytest
from samples import half, one_pair, pair_result, record

from common import notebook
from common.pair import source_hash
from common.report import ratio, share, times
from common.result import Row


@pytest.fixture
def pair(tmp_path):
    return one_pair(tmp_path / "ch1", half("return x + x + w_shift"))


def test_the_diff_is_the_lesson_without_docstrings(pair):
    lines = notebook.show_diff(pair).data.splitlines()
    changed = [line for line in lines[3:] if line.startswith(("+", "-"))]
    assert changed == ["-    return 2 * x + w_shift", "+    return x + x + w_shift"]
    assert "Double" not in "".join(lines)


def test_calls_are_counted_without_values(pair):
    call = notebook.ready(pair.baseline, pair.sizes["default"], "meta")
    with notebook.CountCalls() as counter:
        out = call()
    assert sum(counter.calls.values()) == 2  # a product and a sum
    assert out.is_meta


def test_a_pair_that_changed_is_not_shown_as_current(pair, tmp_path, monkeypatch):
    current, old = pair_result(source_hash=source_hash(pair)), pair_result("another")
    records = [record(current, kind="cpu"), record(current, old), record(old, name="NVIDIA A10")]
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    monkeypatch.setattr(notebook, "recorded", lambda chapter: [(Path("unused"), each) for each in records])
    found = notebook.recorded_on_gpu("ch1")
    assert (notebook.origin(found), found.pairs) == ("NVIDIA H200, 2026-01-02", [current])
    records[:] = records[:1]
    assert notebook.recorded_on_gpu("ch1") is None


def test_a_record_is_shown_with_origin_rows_and_remarks():
    rows = [Row("optimized/fused", "baseline", "skipped", "needs an NVIDIA GPU")]
    text = notebook.show(record(pair_result(ratio=2.5), pair_result("other", rows=rows, arms={}))).data
    assert text.startswith("*NVIDIA H200, 2026-01-02*\n\n| pair |")
    shown = pair_result(ratio=2.5)
    figures = (ratio(shown.rows[0]), times(shown, shown.rows[0]), share(shown, shown.rows[0]))
    assert f"| double | optimized | **faster** | {' | '.join(figures)} |" in text
    assert text.endswith("- other, fused: needs an NVIDIA GPU")


@pytest.mark.parametrize(("guess", "says"), [(1.9, "too low"), (1.97, "right"), (2.0, "right"), (3.0, "too high")])
def test_a_guess_is_judged_by_the_interval_and_the_margin(guess, says):
    row = pair_result().rows[0]
    assert notebook.against(guess, row) == f"you guessed {guess:g}x; measured {ratio(row)}: {says}"


def test_without_a_ratio_the_verdict_answers_the_guess():
    row = Row("optimized", "baseline", "skipped", "needs an NVIDIA GPU")
    assert notebook.against(2.0, row) == "you guessed 2x; skipped: needs an NVIDIA GPU"
