"""Ratio, interval and verdict on samples whose answers are known; and what is concluded from them."""

import math
from collections import Counter
from dataclasses import astuple
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from samples import because, notes_of, reason_of, version, write_pair

from common import stats
from common.engine import conclude as conclusion
from common.engine import sampling
from common.engine.candidates import Candidate
from common.engine.conclude import pair_result
from common.engine.job import Job
from common.engine.plan import CallTiming, Plan, WarmUp
from common.engine.sampling import Samples
from common.engine.stage import Bench, Progress, Stage
from common.machine.clock import Sample
from common.machine.limits import Limit
from common.pairs.pair import discover
from common.record.decision import decide
from common.record.outcome import Outcome, Verdict
from common.record.recompute import limit_time
from common.show import words
from common.stats import Estimate

BLOCKS, ROUNDS = 12, 5


def samples(rng, median_s=1e-3, noise=0.01, blocks=BLOCKS, rounds=ROUNDS):
    return median_s * np.exp(noise * rng.standard_normal((blocks, rounds)))


def test_the_ratio_is_the_median_of_the_blocks_medians():
    baseline = [[2, 2, 200], [4, 4, 0.1], [6, 6, 6], [8, 8, 8], [2, 3, 2], [10, 10, 10]]
    # 2 4 6 8 2 10: the middle of an even number in logs, and, of six blocks, the full range
    assert astuple(stats.estimate(baseline, [[1, 1, 1]] * 6)) == pytest.approx((math.sqrt(4 * 6), 2, 10))


def test_rounds_are_compared_with_their_own_round():
    drift = np.array([[1.0, 2.0, 4.0, 8.0, 16.0]] * BLOCKS)  # a clock that slows down hits both arms alike
    assert astuple(stats.estimate(3 * drift, drift)) == pytest.approx((3, 3, 3))


def test_swapping_the_arms_inverts_everything():
    rng = np.random.default_rng(1)
    a, b = samples(rng, 2e-3, 0.1), samples(rng)
    there = stats.estimate(a, b)
    assert astuple(stats.estimate(b, a)) == pytest.approx((1 / there.ratio, 1 / there.high, 1 / there.low))


@pytest.mark.parametrize(("n", "rank"), [(0, 0), (1, 0), (2, 0), (5, 0), (6, 1), (8, 1), (9, 2), (12, 3), (48, 17)])
def test_the_rank_is_the_largest_whose_interval_still_covers(n, rank):
    """The k-th smallest and the k-th largest miss the median with 2 P(B < k), B ~ Binomial(n, 1/2)."""

    def missed(k):
        return 2 * sum(math.comb(n, j) for j in range(k)) / 2**n

    assert stats.sign_interval_rank(n) == rank
    assert missed(rank) <= 0.05 < missed(rank + 1)


@pytest.mark.parametrize("blocks", [6, 12, 24])
@pytest.mark.parametrize("noise", ["normal", "heavy", "skewed"])
def test_the_interval_covers_the_truth_as_often_as_it_says(blocks, noise):
    rng = np.random.default_rng(blocks)
    draw = {  # heavy: spikes without a variance; skewed: its median is 0
        "normal": lambda: rng.standard_normal((blocks, 1)), "heavy": lambda: rng.standard_t(1.5, (blocks, 1)),
        "skewed": lambda: rng.exponential(1, (blocks, 1)) - math.log(2),
    }[noise]  # fmt: skip
    ones, times = np.ones((blocks, 1)), 1000
    found = (stats.estimate(1.3 * np.exp(0.01 * draw()), ones) for _ in range(times))
    covered = sum(one.low <= 1.3 <= one.high for one in found) / times
    rank = stats.sign_interval_rank(blocks)
    exact = 1 - 2 * sum(math.comb(blocks, j) for j in range(rank)) / 2**blocks
    assert exact >= 0.95
    assert covered == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / times))


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_too_few_blocks_bound_nothing(blocks):
    found = stats.estimate(np.full((blocks, 5), 3.0), np.ones((blocks, 5)))
    assert astuple(found) == (pytest.approx(3), 0, math.inf)
    assert stats.verdict(found) == "unsure"


def test_arms_of_different_rounds_are_refused():
    for said, *arms in (
        ("same rounds", [[1, 1]], [[1]]),
        ("same rounds", [[1]] * 6, [[1]] * 7),
        ("no samples", [], []),
    ):
        with pytest.raises(ValueError, match=said):
            stats.estimate(*arms)


def test_one_slow_block_or_round_moves_nothing_and_none_is_dropped():
    rng = np.random.default_rng(2)
    a, b = samples(rng, 2e-3), samples(rng)
    before = stats.estimate(a, b)
    a[3] *= 50  # a neighbour woke up
    a[5, 2] *= 1000
    after = stats.estimate(a, b)
    assert after.ratio == pytest.approx(before.ratio, rel=0.01)
    assert before.high <= after.high < 1.05 * before.high  # it did take part


@pytest.mark.parametrize("planted", [0.5, 0.9, 1 / 1.06, 1.06, 1.1, 3.0, 100.0])
def test_a_planted_ratio_is_found(planted):
    rng = np.random.default_rng(3)
    found = [stats.estimate(samples(rng, planted * 1e-3), samples(rng)) for _ in range(50)]
    expected = "faster" if planted > 1 else "slower"
    assert {stats.verdict(one) for one in found} == {expected}
    assert np.median([one.ratio for one in found]) == pytest.approx(planted, rel=0.005)
    assert sum(one.low <= planted <= one.high for one in found) >= 43  # 96 % of 50 are 48


def test_equal_arms_are_never_called_different():
    rng = np.random.default_rng(4)
    for noise in (0.005, 0.03, 0.2):
        pairs = [[samples(rng, noise=noise) for _ in range(2)] for _ in range(200)]
        found = [stats.verdict(stats.estimate(*pair)) for pair in pairs]
        assert not {"faster", "slower"} & set(found[:150]) or noise > 0.1  # beyond that a floor is needed: see below
        assert noise > 0.01 or found.count("same") > 190


def test_noise_raises_the_bar():
    rng = np.random.default_rng(5)
    wrong = np.zeros(2)
    for _ in range(300):
        a, b, again = (samples(rng, noise=0.2) for _ in range(3))
        floors = (0.0, stats.noise_floor(a, again))
        wrong += [stats.verdict(stats.estimate(a, b), floor) in ("faster", "slower") for floor in floors]
    assert wrong[1] < min(wrong[0], 0.025 * 300)


def test_the_noise_floor_is_how_far_the_repeat_lies_from_one():
    base = np.ones((6, 5))
    for factor, floor in ((1, 0), (1.03, 0.03), (0.8, 0.2)):
        assert stats.noise_floor(factor * base, base) == pytest.approx(floor)


@pytest.mark.parametrize(
    ("low", "high", "floor", "expected"),
    [
        (1.0201, 1.5, 0, "faster"), (1.02, 1.5, 0, "unsure"),  # the band's edge belongs to the band
        (0.5, 0.9803, 0, "slower"), (0.5, 1 / 1.02, 0, "unsure"), (1 / 1.02, 1.02, 0, "same"), (0.99, 1.01, 0, "same"),
        (1.001, 1.019, 0, "same"),  # excludes 1, and is no difference worth the name
        (0.99, 1.0201, 0, "unsure"), (0.9803, 1.01, 0, "unsure"), (0.5, 2.0, 0, "unsure"),
        (1.04, 1.06, 0.05, "unsure"), (1.0501, 1.06, 0.05, "faster"), (0.96, 1.04, 0.05, "same"),
        (0.9, 0.95, 0.05, "slower"), (1.03, 1.04, 0.001, "faster"),  # a quiet machine does not narrow it below 2 %
        (0.0, math.inf, 0, "unsure"),
    ],
)  # fmt: skip
def test_verdicts_at_their_edges(low, high, floor, expected):
    assert stats.verdict(Estimate(1.0, low, high), floor) == expected


def test_unsure_says_what_would_settle_it():
    def said(*of, floor=0.0):
        return words.text(decide(Estimate(*of), 6, floor, [], []).reason)

    assert "more blocks" in said(1.0, 0.9, 1.1)
    assert said(1.0, 0.9, 1.1, floor=0.07).startswith("the baseline differs from itself by 7.0%")
    assert said(3.0, 2.9, 3.1) == ""


def test_the_overall_median_is_of_blocks():
    assert stats.overall_median([[1.0, 1.0, 9.0], [2.0, 2.0, 2.0], [9.0, 9.0, 1.0]]) == 2.0


def test_the_spread_is_half_the_interquartile_range_of_all_samples_over_their_median():
    block = [0.96, 0.98, 1.0, 1.02, 1.04]
    for seconds, spread in (
        ([block, block], 0.02), ([[1000 * value for value in block]] * 2, 0.02),
        ([[2.0, 2.0], [2.0]], 0),  # blocks may have lost rounds
        ([[0.96, 0.98, 1.0, 1.02, 9.0], block], 0.02),  # a rare outlier does not count
        ([[1.0] * 5, [3.0] * 5], 0.5),  # blocks that differ do
    ):  # fmt: skip
        assert stats.spread(seconds) == pytest.approx(spread)


def test_more_noise_asks_for_more_blocks_within_bounds():
    asked = [stats.blocks_for(sd, ROUNDS) for sd in (0.0, 0.005, 0.02, 0.03, 0.04, 1.0)]
    assert asked == sorted(asked)
    assert asked[0] == 12 < asked[-2] < 48 == asked[-1]


def test_the_blocks_asked_for_bring_the_interval_under_the_half_width():
    rng = np.random.default_rng(6)
    noise = 0.03
    blocks = stats.blocks_for(noise * math.sqrt(2), ROUNDS)  # of a difference of two arms
    assert 12 < blocks < 48
    pairs = [[samples(rng, noise=noise, blocks=blocks) for _ in range(2)] for _ in range(200)]
    found = [stats.estimate(*pair) for pair in pairs]
    assert np.median([(one.high - one.low) / 2 for one in found]) == pytest.approx(0.015, rel=0.15)


# What is concluded

PEAKS = {
    "dram_bytes": (4e12, 5e12),
    "dram_read_bytes": (4.5e12, 5e12),
    "fp32_flops": (50e12, 60e12),
    "h2d_bytes": (50e9, None),
}
LIMITS = {key: {"measured": measured, "datasheet": peak} for key, (measured, peak) in PEAKS.items()}


def blocks_of(value, blocks=6):
    return [[value] * 5] * blocks


@pytest.fixture
def conclude(tmp_path):
    """conclude(times, ...): what is said of a pair whose arms took these seconds: {label: seconds or blocks}."""
    write_pair(
        tmp_path,
        "double",
        {"": version("return x + x + w_shift"), "next": version(extra='VERSUS = ""\nPRECISION = "tf32"')},
    )
    (pair,) = discover(tmp_path)

    def result(times, cost=(), limits=LIMITS, clock="wall", floor_s=0.0, host_s=0.0, cache=None, bad=(), waited=()):
        blocks = {label: value if isinstance(value, list) else blocks_of(value) for label, value in times.items()}
        blocks = {"control": blocks["baseline"], **blocks}
        floors = floor_s if isinstance(floor_s, dict) else dict.fromkeys(blocks, floor_s)
        paces = {label: CallTiming(0.0, host_s, 1, 0.5, floors.get(label, 0.0)) for label in blocks}
        waits = {label: iter([True] * dict(waited).get(label, 0)) for label in blocks}

        def samples_of(i, j):
            of = {label: each[i][j] for label, each in blocks.items() if i < len(each)}
            return {k: Sample(v, host_s, 0.0, 1.0, None, device_waited=next(waits[k], False)) for k, v in of.items()}

        rounds = [[samples_of(i, j) for j in range(len(block))] for i, block in enumerate(blocks["baseline"])]
        samples = Samples(clock, Plan(6, 5, paces), {label: dict(cost) for label in blocks}, rounds)
        versions = [label for label in blocks if label.startswith(("baseline", "optimized"))]
        job = Job(pair, "default", "cpu", {"kind": "cpu", "cache_bytes": cache}, limits, versions, versions)
        candidates = tuple(Candidate(label, ModuleType(label), print) for label in blocks)
        return pair_result(Bench(job, Progress(print), candidates=candidates, outcomes=dict(bad)), samples)

    return result


@pytest.mark.parametrize(
    ("cost", "which", "expected"),
    [
        ({"dram_bytes": 8e9}, "measured", (2e-3, "dram_bytes")),
        ({"dram_bytes": 8e9}, "datasheet", (1.6e-3, "dram_bytes")),
        ({"dram_bytes": 8e9, "fp32_flops": 50e9}, "measured", (2e-3, "dram_bytes")),
        ({"dram_bytes": 8e9, "fp32_flops": 500e9}, "measured", (1e-2, "fp32_flops")),
        ({"dram_bytes": 8e9, "fp8_flops": 1.0}, "measured", (None, "")),  # an unknown peak: never a guess
        ({"h2d_bytes": 1e9}, "datasheet", (None, "")),
        ({}, "measured", (None, "")),
    ],
)
def test_the_limit_is_the_largest_amount_over_its_peak(cost, which, expected):
    least, by = limit_time(cost, LIMITS, which)
    assert (least, by) == (expected[0] and pytest.approx(expected[0]), expected[1])


def test_an_arm_stands_beside_both_limits(conclude):
    found = conclude({"baseline": 8e-3, "optimized": 4e-3}, {"dram_bytes": 8e9}, clock="device", host_s=7e-6)
    arm = found.arms["optimized"]
    assert (arm.median_s, arm.host_s, arm.compile_s) == (4e-3, 7e-6, 0.5)
    assert (arm.of_limit, arm.of_datasheet) == pytest.approx((0.5, 0.4))
    assert (found.limit_s, found.limit_by) == (pytest.approx(2e-3), "dram_bytes")
    unknown = conclude({"baseline": 8e-3, "optimized": 4e-3}, {"fp8_flops": 8e9})
    assert (unknown.arms["optimized"].of_limit, unknown.limit_s, unknown.limit_by) == (None, None, "")
    assert unknown.arms["optimized"].host_s is None  # the wall clock holds it already


@pytest.mark.parametrize(
    ("median_s", "cost", "cache", "is_possible"),
    [
        (1.59e-3, {"dram_bytes": 8e9}, 0, False),  # 8 GB at 5 TB/s: 1.6 ms
        (1.61e-3, {"dram_bytes": 8e9}, 0, True),
        (1.59e-3, {"dram_bytes": 8e9}, 100e6, True),  # what the cache may have kept need not have moved
        (1e-9, {"dram_bytes": 50e6}, 100e6, True),
        (1.59e-3, {"dram_read_bytes": 8e9}, 0, False),  # as of a copy
        (1.59e-3, {"dram_read_bytes": 8e9}, 100e6, True),
        (1e-6, {"fp32_flops": 1e9}, 100e6, False),
        (1e-9, {"link_bytes": 1e9}, None, True),  # no peak
        (1e-9, {}, None, True),
    ],
)
def test_a_time_below_the_physical_limit_is_no_time(median_s, cost, cache, is_possible, conclude, monkeypatch):
    monkeypatch.setattr(conclusion, "measure_limits", lambda device: {})
    found = conclude({"baseline": 1.0, "optimized": median_s}, cost, cache=cache)
    (row,) = found.rows
    if is_possible:
        assert (row.verdict, row.ratio) == ("faster", pytest.approx(1 / median_s))
    else:
        assert (row.verdict, row.ratio, row.interval) == ("invalid", None, None)
        assert "below the physical limit" in reason_of(row)
        assert "optimized" not in found.arms  # no figure of it is left


@pytest.mark.parametrize(
    ("median_s", "again", "is_possible"),
    [(1.1e-3, None, True), (0.9e-3, None, False), (0.9e-3, 2e12, False), (0.9e-3, 4e12, True), (0.4e-3, 4e12, False)],
)
def test_a_time_far_below_the_measured_limit_is_no_time(median_s, again, is_possible, conclude, monkeypatch):
    """Of what no datasheet tells: 4e9 at 2e12 a second, 2 ms; unless the limit is another when it is measured again."""
    found = {"h2d_bytes": Limit(again, None, "", "")} if again else {}
    monkeypatch.setattr(conclusion, "measure_limits", lambda device: found)
    limits = {"h2d_bytes": {"measured": 2e12, "datasheet": None}}
    (row,) = conclude({"baseline": 1.0, "optimized": median_s}, {"h2d_bytes": 4e9}, limits).rows
    assert (row.verdict, row.ratio is None) == (("faster", False) if is_possible else ("invalid", True))
    assert is_possible or "the time at the measured limit: 4e+09 h2d bytes take" in reason_of(row)


def test_an_impossible_baseline_leaves_no_row(conclude):
    found = conclude({"baseline": 1e-3, "optimized": 2e-3}, {"dram_bytes": 8e9})
    ((verdict, ratio, reason),) = [(row.verdict, row.ratio, reason_of(row)) for row in found.rows]
    assert (verdict, ratio, found.arms) == ("invalid", None, {}) and reason.startswith("the baseline: ")


def test_a_row_gives_the_ratio_against_baseline_libraries_and_the_earlier_rung(conclude):
    found = conclude({"baseline": 6e-3, "optimized": 2e-3, "optimized/next": 4e-3, "library/fused": 1e-3})
    first, second, rung = found.rows
    three = pytest.approx(3)
    assert (first.verdict, first.ratio, first.interval) == ("faster", three, (three, three))
    assert first.vs_library["library/fused"]["ratio"] == pytest.approx(0.5)  # the library is twice as fast
    assert (second.variant, second.versus, second.ratio) == ("optimized/next", "baseline", pytest.approx(1.5))
    assert (rung.variant, rung.versus, rung.verdict) == ("optimized/next", "optimized", "slower")
    assert rung.ratio == pytest.approx(0.5)
    assert (first.precision, second.precision, rung.precision) == ("", "tf32", "tf32")


@pytest.mark.parametrize(("guilty", "left"), [("optimized", ["optimized/next"]), ("baseline", [])])
def test_no_ratio_is_given_for_an_arm_that_is_out(guilty, left, conclude):
    times = {"baseline": 6e-3, "optimized": 2e-3, "optimized/next": 4e-3}
    found = conclude(times, bad={guilty: Outcome(Verdict.INVALID, because("returned zeros"))})
    assert sorted({row.variant for row in found.rows if row.ratio is not None}) == left
    assert {row.versus for row in found.rows} == {"baseline"}  # nothing is compared with an arm that is out
    assert {reason_of(row).removeprefix("the baseline: ") for row in found.rows if row.ratio is None} == {
        "returned zeros"
    }
    assert guilty not in found.arms


def test_times_near_the_clocks_floor_get_no_ratio(conclude):
    above, below = (
        conclude({"baseline": 9e-6, "optimized": seconds}, floor_s=1e-6).rows[0] for seconds in (3.1e-6, 2.9e-6)
    )
    assert (above.verdict, below.verdict, below.ratio, below.interval) == ("faster", "too short", None, None)
    assert "floor" in reason_of(below)


def test_every_arm_has_a_floor_of_its_own(conclude):
    """A batch shares what the clock costs, and only short calls are batched."""
    times, left = {"baseline": 1e-1, "optimized": 2e-6, "library": 1e-6}, {1e-7: ["library"], 1e-6: []}
    for floor_s, libraries in left.items():  # a library's time may be none, too
        (row,) = conclude(times, floor_s={"baseline": 1e-6, "optimized": 1e-7, "library": floor_s}).rows
        assert (row.verdict, list(row.vs_library)) == ("faster", libraries)
    assert notes_of(row) == ["library: below the timer's resolution: less than 3 x the clock's own floor of 1 us"]
    (row,) = conclude(times, floor_s=1e-6).rows
    assert (row.verdict, row.ratio) == ("too short", None)


@pytest.mark.parametrize(
    ("second_s", "floor_s", "said"),
    [((3e-3, 1e-3), 0.0, ("unsure", "six")), ((1e-7, 1e-7), 1e-7, ("too short", "timer's resolution"))],
)
def test_too_few_blocks_give_no_interval_and_make_no_time_of_what_is_none(second_s, floor_s, said, conclude):
    times = {label: blocks_of(value, 5) for label, value in zip(("baseline", "optimized"), second_s, strict=True)}
    (row,) = conclude(times, floor_s=floor_s).rows
    assert (row.verdict, row.interval) == (said[0], None)
    assert said[1] in reason_of(row)
    assert (row.ratio is None) == bool(floor_s)


@pytest.mark.parametrize(
    ("median_s", "cost", "clock", "expected"),
    [
        (10e-6, {}, "device", "launch-bound: the host needs 35 us to issue 10 us of device work"),
        (50e-6, {"dram_bytes": 2e6}, "wall", None),
        (50e-6, {"dram_bytes": 1e6}, "wall", "fits in the cache, which stays warm"),
        (50e-6, {"dram_bytes": 1e6}, "device", None),  # each sample begins with a cold one
        (1.7e-3, {"dram_bytes": 8e9}, "device", "above the measured limit"),
        (2.1e-3, {"dram_bytes": 8e9}, "device", None),
    ],
)
def test_notes_say_what_a_reader_must_know_beside_a_time(median_s, cost, clock, expected, conclude):
    found = conclude({"baseline": 5e-3, "optimized": median_s}, cost, clock=clock, host_s=35e-6, cache=1e6)
    notes = notes_of(found.rows[0])
    assert len(notes) == (expected is not None)
    assert expected is None or notes[0].startswith(expected)


@pytest.mark.parametrize("label", ["baseline", "optimized", "library"])
def test_a_time_that_is_in_part_the_hosts_is_noted(label, conclude):
    times = {"baseline": 6e-3, "optimized": 2e-3, "library": 1e-3}
    (row,) = conclude(times, waited={label: 7, "control": 30}).rows
    assert notes_of(row) == []  # a quarter: the median is of the others
    (row,) = conclude(times, waited={label: 8}).rows
    who = "the baseline" if label == "baseline" else label
    assert notes_of(row) == [f"{who}: the device waited for the host in 8 of 30 samples: the time includes this"]


def test_where_the_device_waited_the_next_samples_hide_more():
    hidden_s, waited = [], Counter()

    def sample(calls, host_s, after, look):
        hidden_s.append(host_s)
        return Sample(1e-3, 1e-4, 0.0, 1.0, calls[0](), device_waited=host_s < 5e-4)

    one = Candidate("optimized", ModuleType("version"), lambda: torch.zeros(1))
    job = SimpleNamespace(device="cpu", reports_turns=False, info={"kind": "cuda"}, seed=0)
    stage = Stage(Bench(job, Progress(print), candidates=(one,)))
    inputs = SimpleNamespace(by_label={"optimized": {}}, prepare=lambda label: {})
    planned, clock = Plan(6, 6, {"optimized": CallTiming(1e-3, 1e-4)}), SimpleNamespace(sample=sample)
    for _ in range(6):
        states = {"optimized": WarmUp({}, 0.0)}
        sampling._sample_round(stage, clock, planned, states, [inputs], inputs, [one], waited, keep_all=False)
    assert hidden_s == pytest.approx([1e-4, 2e-4, 4e-4, 8e-4, 8e-4, 8e-4])
    assert waited == {"optimized": 3}
