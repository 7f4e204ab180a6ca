"""How good predictions were: intervals of hit rates, forecasters beside, what `learn.py progress` says of them."""

from pathlib import Path

import pytest
from samples import pair_result, record

from common.cli import forecasts, learn_commands
from common.learn import learner_log
from common.learn.exercise import find
from common.learn.forecast_score import ScoredForecast, compare_forecasters, hit_rate_interval, off, sureness
from common.record.store import keep_record


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A store, and one pair recorded on a GPU: ch1/double waits for `dram`."""
    for module in ("common.learn.exercise", "common.learn.learner_log"):
        monkeypatch.setattr(f"{module}.WORK", tmp_path / "work")
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    forecasts._limits.cache_clear()
    keep_record(record(pair_result()))
    yield tmp_path / "work"
    forecasts._limits.cache_clear()


def asked(of, said, found=None, range=None, **beside):
    """A question of a notebook; `interval` in `beside`: it is about a time."""
    learner_log.add("predict", of, hash="a", pair="ch1/double" if "interval" in beside else "", said=said, range=range)
    if found is not None:
        learner_log.add("found", of, hash="a", found=found, **beside)


def shown(capsys):
    assert learn_commands.main(["progress"]) == 0
    return [line for line in capsys.readouterr().out.splitlines() if not line.startswith("ch")]


@pytest.mark.parametrize(
    ("hits", "n", "says"),
    [(0, 10, "0% to 31%"), (9, 10, "55% to 100%"), (10, 10, "69% to 100%"), (180, 200, "85% to 94%")],
)
def test_intervals_of_hit_rates_are_those_of_tables(hits, n, says):
    assert hit_rate_interval(hits, n) == says


def test_interval_scores_and_sureness():
    right, wrong = ScoredForecast("a", 1.0, 2.0, 1.5), ScoredForecast("a", 1.0, 2.0, 4.0)
    assert right.score == pytest.approx(0.6931, abs=1e-4)
    assert wrong.score == pytest.approx(0.6931 + 20 * 0.6931, abs=1e-3)
    assert sureness([wrong] * 19).endswith("Nothing is concluded from fewer than 20.")
    for made, said in (([wrong] * 20, "too narrow"), ([right] * 40, "too wide"), ([right] * 27 + [wrong] * 3, "fits")):
        assert said in sureness(made)
    meets = ScoredForecast("a", 1.0, 1.9, 2.0, interval=(1.92, 2.1))  # 1.92 / 1.02 is below 1.9
    assert meets.hit and meets.score == pytest.approx(0.6419, abs=1e-4)
    assert not ScoredForecast("a", 1.0, 1.9, 2.0, interval=(1.95, 2.1)).hit
    assert "low" in off(1.0, 3.0) and "high" in off(3.0, 1.0) and off(2, 2) == "right"


def test_scores_stand_beside_those_of_forecasters_of_the_same_figures():
    e = 2.718281828459045
    both = ScoredForecast("a", 1.0, e, e, naive=1.0, bytes=e)  # scores 1; a number that misses by e scores 20
    neither = ScoredForecast("b", 1.0, 2.0, 100.0)
    assert compare_forecasters([both, neither]) == [
        "interval score, mean of 1 (lower is better): yours 1.00; the naive guess: 20.0",
        "interval score, mean of 1 (lower is better): yours 1.00; the ratio of bytes: 0.00",
    ]
    within = ScoredForecast("d", 2.0, 2.0, 2.0, naive=1.9, interval=(1.9, 2.1))  # all that it may be is right for both
    assert compare_forecasters([within])[0].endswith("yours 0.00; the naive guess: 0.00")
    assert compare_forecasters([neither, ScoredForecast("c", 1.0, 2.0, 1.5, naive=0, bytes=-1.0)]) == []


def test_a_figure_completes_all_answers_before_it_and_none_after_it(work):
    for said in (2.0, 3.0):
        learner_log.add("predict", "ch1/x ratio", hash="a", said=said)
    learner_log.add("found", "ch1/x ratio", hash="b", found=9.0)
    for found in (5.0, 6.0):
        learner_log.add("found", "ch1/x ratio", hash="a", found=found, naive=1.0)
    learner_log.add("predict", "ch1/x ratio", hash="a", said=4.0)
    made = [(each["what"], each["said"], each.get("found"), each["locked"]) for each in learner_log.predictions()]
    assert made == [("predict", 2.0, 5.0, True), ("predict", 3.0, 5.0, False), ("predict", 4.0, None, False)]


def test_progress_tells_of_exercises_and_notebooks_together_and_of_revisions_apart(work, capsys):
    time = {"interval": [1.9, 2.1], "naive": 8.0, "bytes": 2.0}
    asked("ch1/double ratio", 3.0, 2.0, range=[1.5, 6.0], **time)
    asked("ch4b/causal fewer", 5, 50, range=[4, 6])
    asked("ch1/double sectors", 10, 4)
    learner_log.add("predict", "ch1/ratios softmax", hash="c", range=(1.0, 1.5), found=1.8)
    asked("ch1/double ratio", 2.0, 2.0, range=[1.9, 2.1], **time)
    asked("ch1/words faster", "256", "128")
    asked("ch1/zero percent", 0.0, 3.0)
    asked("ch1/not_yet ratio", 2.0, range=[1.0, 3.0])
    assert shown(capsys) == [
        "predictions: 1 of 3 ranges hold the figure (1% to 91% with 95 % confidence); nine of ten should. "
        "Nothing is concluded from fewer than 20.",
        "  by resource: counts 0 of 1 (0% to 97%), dram 1 of 1 (2% to 100%), other 0 of 1 (0% to 97%)",
        "  by chapter: ch1 1 of 2 (1% to 99%), ch4 0 of 1 (0% to 97%)",
        "predictions without a range: 1; half of them are within a factor of 2.50",
        "  interval score, mean of 1 (lower is better): yours 1.39; the naive guess: 26.4",
        "  interval score, mean of 1 (lower is better): yours 1.39; the ratio of bytes: 0.00",
        "  surprise: ch4b/causal fewer: you said 4.00 to 6.00, it was 50.0",
        "  surprise: ch1/double sectors: you said 10.0, it was 4.00",
        "  surprise: ch1/ratios softmax: you said 1.00 to 1.50, it was 1.80",
        "revisions: 1 of 1 ranges hold the figure (2% to 100% with 95 % confidence); nine of ten should. "
        "Nothing is concluded from fewer than 20.",
        "  by resource: dram 1 of 1 (2% to 100%)",
        "  by chapter: ch1 1 of 1 (2% to 100%)",
        "  interval score, mean of 1 (lower is better): yours 0.100; the naive guess: 26.4",
        "  interval score, mean of 1 (lower is better): yours 0.100; the ratio of bytes: 0.00",
    ]


@pytest.mark.parametrize(("found", "is_surprise"), [(114.4, False), (120.0, False), (130.0, True), (50.0, True)])
def test_a_rounding_is_no_surprise(found, is_surprise, work, capsys):
    asked("ch7/context thousand_rows", 114, found)
    assert any("surprise: ch7/context" in line for line in shown(capsys)) is is_surprise


@pytest.mark.parametrize(
    ("limit", "resource"),
    [("bf16_flops", "arithmetic"), ("fp32_flops", "arithmetic"), ("dram_read_bytes", "dram"), ("", "other")],
)
def test_a_limit_is_of_a_resource_and_of_no_type(limit, resource, monkeypatch):
    """A notebook's prefill on a CPU is in float32, the recorded one in bfloat16."""
    kept = record(pair_result("prefill", chapter="ch7", limit_by=limit))
    monkeypatch.setattr(forecasts, "chapter_records", lambda *args, **kwargs: [(Path("ch7.json"), kept)])
    forecasts._limits.cache_clear()
    event = {"of": "ch7/prefill ratio", "pair": "ch7/prefill", "range": [5.0, 6.0], "found": 5.6, "locked": True}
    (_, line, *_) = forecasts.lines([], [event | {"interval": [5.5, 5.7]}])
    forecasts._limits.cache_clear()
    assert line.startswith(f"  by resource: {resource} 1 of 1")


def test_an_exercises_figure_is_of_the_resource_of_its_pair(work):
    exercise = find("ch1/ratios")
    event = {"of": "ch1/ratios softmax", "range": [1.0, 1.5], "found": 1.8, "locked": True}
    keep_record(record(pair_result("softmax", chapter="ch3")))
    assert "  by resource: dram 0 of 1 (0% to 97%)" in list(forecasts.lines([exercise], [event]))
