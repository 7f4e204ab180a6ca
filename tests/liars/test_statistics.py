"""Lies that no version tells but a harness could: in simulated time, where what is to be found is known exactly."""

import json
from functools import partial
from itertools import chain

import numpy as np
import pytest
from samples import version, write_pair

from common.engine import runner
from common.pairs.pair import discover
from common.record import stats
from common.record.files import RecordError
from common.record.load import load_record, save_record
from common.record.result import BELIEVED
from liars import child
from liars.case import shows
from liars.child import measure_in, measure_quickly, measured

NAP_SIZES = {"check": {"n": 127}, "default": {"n": 128}}


def naps(seconds, extra=""):
    """Both the work and its answer take no time but this."""
    return version(f"time.sleep({seconds})\nreturn 2 * x + w_shift", extra=f"import time\n{extra}", sizes=NAP_SIZES)


def measurer(folder, patch, around=lambda measure: measure):
    """(world, baseline's text, variants' texts) -> the pair's result; `around` changes what its process does."""

    def measure(world, baseline, variants, **options):
        write_pair(folder, "pair", variants, baseline)
        inside = partial(measure_in, world) if world else measure_quickly
        (pair,) = measured(discover(folder), patch, around(inside), **options).pairs
        return pair

    return measure


@pytest.fixture
def measure(machine, tmp_path, monkeypatch):
    return measurer(tmp_path, monkeypatch)


def times(pair, label):
    return pair.arms[label].seconds


def flat(blocks):
    return list(chain.from_iterable(blocks))


@shows(21)
def test_drift_is_shared_by_both_arms(measure):
    pair = measure(child.WarmsUp, naps(2e-3), naps(2e-3), fast=False)
    (row,) = pair.rows
    assert row.verdict == "same", row
    first, second = times(pair, "baseline")[:6], times(pair, "optimized")[-6:]
    assert len(times(pair, "baseline")) >= 12
    assert stats.verdict(stats.estimate(first, second))[0] == "slower"  # one after the other


@shows(21)
def test_who_naps_longer_late_in_a_round_is_nobody_in_particular(measure):
    pair = measure(child.TiresInARound, naps(2e-3), naps(2e-3), fast=False)
    (row,) = pair.rows
    assert row.verdict in ("same", "unsure"), row
    for label in pair.arms:
        assert {order.index(label) for block in pair.orders for order in block} == {0, 1, 2}
    logs = stats.block_log_ratios(times(pair, "baseline"), times(pair, "optimized"))
    assert min(logs) < -0.1  # in an order that is always the same, somebody would always be the slower
    assert max(logs) > 0.1


@shows(21)
def test_whoever_is_first_after_a_break_pays_nothing_for_it(measure):
    pair = measure(child.ColdStart, naps(2e-3), naps(2e-3))
    for label in pair.arms:
        assert flat(times(pair, label)) == pytest.approx([2e-3] * len(flat(times(pair, label))), rel=1e-3)


@shows(22)
def test_a_busy_neighbour_makes_nobody_faster(measure):
    pair = measure(child.BusyNeighbour, naps(2e-3), naps(2e-3), fast=False)
    (row,) = pair.rows
    assert row.verdict in ("same", "unsure"), row
    assert max(flat(times(pair, "baseline"))) > 1.3 * min(flat(times(pair, "baseline")))  # it was there


UNLUCKY = 'import sys\nNAP = 2e-3 * 1.06 ** sum("_baseline_pair_" in name for name in sys.modules)'  # from copy to copy


@shows(22)
def test_where_the_baseline_differs_from_itself_a_smaller_difference_is_none(measure):
    pair = measure(child.World, naps("NAP", UNLUCKY), naps(2e-3 * 1.06 / 1.04))
    (row,) = pair.rows
    assert row.ratio == pytest.approx(1.04, rel=1e-3)
    assert pair.noise_floor == pytest.approx(1 - 1 / 1.06, rel=1e-2)
    found = stats.estimate(times(pair, "baseline"), times(pair, "optimized"))
    assert stats.verdict(found)[0] == "faster"
    assert row.verdict == "same"  # within what this machine calls a difference today


@shows(23)
def test_no_sample_is_dropped_and_slower_is_slower(measure):
    pair = measure(child.Outliers, naps(2e-3), naps(4e-3))
    (row,) = pair.rows
    assert row.verdict == "slower"
    assert row.ratio == pytest.approx(0.5, rel=1e-3)
    rounds = sum(map(len, pair.orders))
    for label in pair.arms:
        samples = flat(times(pair, label))
        assert len(samples) == rounds
        assert any(sample > 10 * np.median(samples) for sample in samples)


@shows(23)
def test_the_best_of_many_is_not_what_counts(measure):
    """The variant is lucky in one call of five."""
    lucky = "calls = []\ndef nap():\n    calls.append(0)\n    return 1e-3 if len(calls) % 5 == 0 else 4e-3"
    pair = measure(child.World, naps(2e-3), naps("nap()", lucky))
    (row,) = pair.rows
    assert min(flat(times(pair, "baseline"))) > 1.9 * min(flat(times(pair, "optimized")))
    assert row.verdict == "slower"
    assert row.ratio == pytest.approx(0.5, rel=1e-3)


@shows(23)
def test_a_round_is_voided_for_the_heat_and_not_for_its_times(measure):
    pair = measure(child.HotAtTimes, naps(2e-3), naps(2e-3))
    (row,) = pair.rows
    assert row.verdict == "same", row
    assert pair.voided_rounds == len(child.HOT)
    left = [3, 5, 4, 5, 5, 5]  # for the block that was lost another one was measured
    assert list(map(len, pair.orders)) == left
    for label in pair.arms:
        assert list(map(len, times(pair, label))) == left
        assert sorted(flat(times(pair, label))) == pytest.approx([2e-3] * (sum(left) - 1) + [6e-3], rel=1e-3)


@shows(23)
def test_where_all_rounds_are_voided_nothing_has_a_time(measure):
    pair = measure(child.HotAlways, naps(2e-3), naps(2e-3))
    (row,) = pair.rows
    assert (row.verdict, row.ratio, row.interval) == ("verified", None, None)
    assert row.reason == "not timed: all 60 rounds were voided for thermal or hardware slowdown"
    assert pair.voided_rounds == 2 * 6 * 5  # twice as many blocks as were asked for
    assert (pair.arms, pair.orders) == ({}, [])


def boast(pair):
    pair["rows"][0]["ratio"] *= 5


def boast_consistently(pair):
    row = pair["rows"][0]
    row.update(ratio=5.0, interval=[4.9, 5.1], verdict="faster")


def call_it_the_same(pair):
    pair["rows"][0].update(ratio=1.0, interval=[1.0, 1.0], verdict="same")


def narrow(pair):
    pair["rows"][0]["interval"] = [pair["rows"][0]["ratio"]] * 2


def praise(pair):
    pair["rows"][0]["verdict"] = "faster"


def drop_what_is_slow(pair):
    seconds = pair["arms"]["optimized"]["seconds"]
    for block in seconds:
        block.remove(max(block))


def best_of_many(pair):
    seconds = pair["arms"]["optimized"]["seconds"]
    seconds[:] = [[min(block)] * len(block) for block in seconds]


def drop_rounds_that_do_not_suit(pair):
    for block in range(len(pair["orders"])):
        slow = int(np.argmax(pair["arms"]["optimized"]["seconds"][block]))
        for arm in pair["arms"].values():
            del arm["seconds"][block][slow]


def clamp(pair):
    """As if nothing were ever slower than the baseline."""
    arms = pair["arms"]
    arms["optimized"]["seconds"] = arms["baseline"]["seconds"]


@pytest.fixture(scope="module")
def kept(machine, tmp_path_factory):
    """A record's file, of a variant that is sometimes faster and mostly slower."""
    folder = tmp_path_factory.mktemp("kept")
    write_pair(folder, "naps", naps(3e-3), naps(2e-3))
    with pytest.MonkeyPatch.context() as patch:
        record = measured(discover(folder), patch, partial(measure_in, child.Uneven))
    save_record(record, folder / "r.json")
    return folder / "r.json"


@shows(23)
@pytest.mark.parametrize(
    "edit",
    [
        boast, boast_consistently, call_it_the_same, narrow, praise, drop_what_is_slow, best_of_many,
        drop_rounds_that_do_not_suit, clamp,
    ],
)  # fmt: skip
def test_a_record_whose_figures_do_not_follow_from_its_samples_is_refused(edit, kept, tmp_path):
    assert load_record(kept).pairs[0].rows[0].verdict == "slower"
    data = json.loads(kept.read_text())
    edit(data["pairs"][0])
    (tmp_path / "edited.json").write_text(json.dumps(data))
    with pytest.raises(RecordError, match="do not follow from its samples"):
        load_record(tmp_path / "edited.json")


WORK = 'def cost(x, w_shift): return {"fp32_flops": 1e9}'
LIMITS = {"fp32_flops": {"measured": 0.8e12, "datasheet": 1e12, "how": "", "source": "a datasheet"}}  # 1 ms


@shows(24)
def test_a_time_below_the_physical_limit_is_none(machine, measure, monkeypatch):
    monkeypatch.setattr(runner, "survey_apart", lambda device, with_limits=True: (machine, LIMITS))
    versions = {name: naps(seconds, WORK) for name, seconds in {"liar": 0.9e-3, "twin": 1.1e-3}.items()}
    pair = measure(child.World, naps(3e-3, WORK), versions)
    rows = {row.variant: row for row in pair.rows}
    liar, twin = rows["optimized/liar"], rows["optimized/twin"]
    assert (liar.verdict, liar.ratio) == ("invalid", None)
    assert "900.0 us is below the physical limit: 1e+09 fp32 flops take 1000.0 us" in liar.reason
    assert twin.ratio == pytest.approx(3 / 1.1, rel=1e-3)
    assert "optimized/liar" not in pair.arms


@shows(6)
@pytest.mark.parametrize(("seconds", "believed"), [(20e-9, False), (500e-9, True)])
def test_what_is_shorter_than_the_clocks_floor_has_no_time(seconds, believed, measure):
    """The clock ticks in microseconds; a sample is as many calls as take 20 of them."""
    (row,) = measure(child.CoarseClock, naps(seconds), naps(2 * seconds)).rows
    assert (row.verdict in BELIEVED) == believed, row
    assert (row.ratio is not None) == believed
    assert believed or "below the timer's resolution" in row.reason


@shows(14)
def test_an_allocation_that_the_other_arm_does_without_is_said(measure):
    inputs = 'return {"x": torch.randn(n, device=device), "out": torch.empty(n, device=device)}'
    sizes = {"check": {"n": 127}, "default": {"n": 1 << 18}}  # 1 MiB
    runs = ("return torch.mul(x, 2, out=out)", "return 2 * x")
    into, anew = (version(run, "x, out", inputs, sizes=sizes) for run in runs)
    pair = measure(None, into, {"twin": into, "liar": anew})
    said = {row.variant: [note for note in row.notes if "allocates" in note] for row in pair.rows}
    assert said["optimized/twin"] == []
    assert said["optimized/liar"] == ["allocates 1.0 MiB a call, the baseline next to nothing"]


@shows(22)
def test_more_cores_than_the_other_arm_keeps_busy_are_said(measure):
    helped = version(
        """
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()
            time.sleep(1e-3)
        return 2 * x + w_shift
        """,
        extra="import time\nfrom concurrent.futures import ThreadPoolExecutor",
        sizes=NAP_SIZES,
    )
    pair = measure(child.World, naps(2e-3), {"liar": helped, "twin": naps(1e-3)})
    assert {row.variant: row.notes for row in pair.rows} == {
        "optimized/liar": ["keeps 2.0 cores busy, the baseline 1.0"],
        "optimized/twin": [],
    }


@shows(1, 7, 12)
def test_nothing_is_compared_with_a_liar_either(measure):
    twin = naps(2e-3, 'VERSUS = "liar"')
    pair = measure(
        child.World, naps(3e-3), {"liar": version("return torch.zeros_like(x)", sizes=NAP_SIZES), "twin": twin}
    )
    assert [(row.variant, row.versus, row.ratio is None) for row in pair.rows] == [
        ("optimized/liar", "baseline", True),
        ("optimized/twin", "baseline", False),
    ]


OFTEN_DEAR = """
calls = []
def nap():
    calls.append(0)
    return 12e-3 if len(calls) % 5 == 0 else 1e-3
"""


@shows(23)
def test_what_every_fifth_call_costs_is_said(measure):
    """A table rebuilt, a log written every few calls: the median does not see it."""
    pair = measure(child.World, naps(2e-3), naps("nap()", OFTEN_DEAR))
    (row,) = pair.rows
    assert any("much dearer" in note for note in row.notes), row


@shows(9)
@pytest.mark.parametrize("dear", [0, 1])
def test_work_put_off_to_every_second_call_is_not_put_off_to_the_untimed_one(dear, measure):
    put_off = f"calls = []\ndef nap():\n    calls.append(0)\n    return 4e-3 if len(calls) % 2 == {dear} else 1e-3"
    pair = measure(child.World, naps(2e-3), naps("nap()", put_off))
    samples = flat(times(pair, "optimized"))
    assert {round(sample * 1e3) for sample in samples} == {1, 4}  # both are timed
