"""Lies that no version tells but a harness could: in simulated time, where what is to be found is known exactly."""

import json
from functools import partial
from itertools import chain

import numpy as np
import pytest
from samples import HONEST, notes_of, reason_of, version, write_pair

from common import stats
from common.engine import runner
from common.pairs.pair import discover
from common.record.files import RecordError
from common.record.outcome import WITH_SPEEDUP
from common.record.record_file import load_record, save_record
from liars import child
from liars.case import shows
from liars.child import measure_in, measure_quickly, measured
from liars.state import OUT

NAP_SIZES = {"check": {"n": 127}, "default": {"n": 128}}


def naps(seconds, extra=""):
    """Both the work and its answer take no time but this."""
    return version(f"time.sleep({seconds})\n{HONEST}", extra=f"import time\n{extra}", sizes=NAP_SIZES)


def in_turn(every, then_s, else_s):
    """What `nap()` takes in each second, fifth, ... call, and in the others."""
    return f"calls = []\ndef nap():\n    calls.append(0)\n    return {else_s} if len(calls) % {every} else {then_s}"


def measurer(folder, patch, around=lambda measure: measure):
    """(world, baseline's text, variants' texts) -> the pair's result, its rows; `around`: what its process does."""

    def measure(world, baseline, variants, **options):
        write_pair(folder, "pair", variants, baseline)
        inside = partial(measure_in, world) if world else measure_quickly
        (pair,) = measured(discover(folder), patch, around(inside), **options).pairs
        return pair, *pair.rows

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
    pair, row = measure(child.WarmsUp, naps(2e-3), naps(2e-3), fast=False)
    assert row.verdict == "same", row
    first, second = times(pair, "baseline")[:6], times(pair, "optimized")[-6:]
    assert len(times(pair, "baseline")) >= 12
    assert stats.verdict(stats.estimate(first, second)) == "slower"  # one after the other


@shows(21)
def test_who_naps_longer_late_in_a_round_is_nobody_in_particular(measure):
    pair, row = measure(child.TiresInARound, naps(2e-3), naps(2e-3), fast=False)
    assert row.verdict in ("same", "unsure"), row
    for label in pair.arms:
        assert {order.index(label) for block in pair.orders for order in block} == {0, 1, 2}
    logs = stats.block_log_ratios(times(pair, "baseline"), times(pair, "optimized"))
    assert min(logs) < -0.08  # in an order that is always the same, somebody would always be the slower
    assert max(logs) > 0.08


@shows(21)
def test_the_first_block_on_a_cpu_counts_for_nothing(measure):
    pair, _ = measure(child.SlowAtFirst, naps(2e-3), naps(2e-3))
    assert [len(pair.orders), {round(sample, 6) for label in pair.arms for sample in flat(times(pair, label))}] == [
        6,
        {2e-3},
    ]


@shows(21)
def test_who_is_first_after_a_break_and_pays_for_it_is_nobody_in_particular(measure):
    pair, row = measure(child.ColdStart, naps(2e-3), naps(2e-3))
    assert (row.verdict, row.ratio) == ("same", pytest.approx(1, rel=1e-3))
    for label in pair.arms:
        assert {round(sample * 1e3) for sample in flat(times(pair, label))} == {2, 3}


@shows(22)
def test_a_busy_neighbour_makes_nobody_faster(measure):
    pair, row = measure(child.BusyNeighbour, naps(2e-3), naps(2e-3), fast=False)
    assert row.verdict in ("same", "unsure"), row
    assert max(flat(times(pair, "baseline"))) > 1.3 * min(flat(times(pair, "baseline")))  # it was there


UNLUCKY = 'import sys\nNAP = 2e-3 * 1.06 ** sum("_baseline_pair_" in name for name in sys.modules)'  # from copy to copy


@shows(22)
def test_where_the_baseline_differs_from_itself_a_smaller_difference_is_none(measure):
    pair, row = measure(child.World, naps("NAP", UNLUCKY), naps(2e-3 * 1.06 / 1.04))
    assert row.ratio == pytest.approx(1.04, rel=1e-3)
    assert pair.noise_floor == pytest.approx(1 - 1 / 1.06, rel=1e-2)
    found = stats.estimate(times(pair, "baseline"), times(pair, "optimized"))
    assert stats.verdict(found) == "faster"
    assert row.verdict == "same"  # within what this machine calls a difference today


@shows(23)
def test_no_sample_is_dropped_and_slower_is_slower(measure):
    pair, row = measure(child.Outliers, naps(2e-3), naps(4e-3))
    assert (row.verdict, row.ratio) == ("slower", pytest.approx(0.5, rel=1e-3))
    rounds = sum(map(len, pair.orders))
    for label in pair.arms:
        samples = flat(times(pair, label))
        assert len(samples) == rounds
        assert any(sample > 10 * np.median(samples) for sample in samples)


@shows(23)
def test_the_best_of_many_is_not_what_counts(measure):
    """The variant is lucky in one call of seven."""
    pair, row = measure(child.World, naps(2e-3), naps("nap()", in_turn(7, 1e-3, 4e-3)))
    assert min(flat(times(pair, "baseline"))) > 1.9 * min(flat(times(pair, "optimized")))
    assert (row.verdict, row.ratio) == ("slower", pytest.approx(0.5, rel=1e-3))


@shows(23)
def test_a_round_is_voided_for_the_heat_and_not_for_its_times(measure):
    pair, row = measure(child.HotAtTimes, naps(2e-3), naps(2e-3))
    assert row.verdict == "same", row
    assert pair.voided_rounds == len(child.HOT)
    left = [3, 5, 4, 5, 5, 5]  # for the block that was lost another one was measured
    assert list(map(len, pair.orders)) == left
    for label in pair.arms:
        assert list(map(len, times(pair, label))) == left
        assert sorted(flat(times(pair, label))) == pytest.approx([2e-3] * (sum(left) - 1) + [6e-3], rel=1e-3)


@shows(23)
def test_where_all_rounds_are_voided_nothing_has_a_time(measure):
    pair, row = measure(child.HotAlways, naps(2e-3), naps(2e-3))
    assert (row.verdict, row.ratio, row.interval) == ("verified", None, None)
    assert reason_of(row) == "not timed: all 60 rounds were voided for thermal or hardware slowdown"
    assert pair.voided_rounds == 2 * 6 * 5  # twice as many blocks as were asked for
    assert (pair.arms, pair.orders) == ({}, [])


def drop_what_is_slow(result):
    for block in result["candidates"]["optimized"]["seconds"]:
        block.remove(max(block))


EDITS = {  # of a file's result: what it says of a variant, or its samples
    "a speedup": lambda result: result["variants"][0].update(ratio=5.0),
    "an interval": lambda result: result["variants"][0].update(interval=[4.9, 5.1]),
    "a verdict": lambda result: result["variants"][0].update(verdict="faster"),
    "a median": lambda result: result["candidates"]["optimized"].update(median_s=1e-6),
    "a noise floor": lambda result: result.update(noise_floor=0.5),
    "only what is fast": drop_what_is_slow,
}


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
@pytest.mark.parametrize("edit", EDITS)
def test_a_record_cannot_claim_what_its_samples_do_not_give(edit, kept, tmp_path):
    assert load_record(kept).pairs[0].rows[0].verdict == "slower"
    data = json.loads(kept.read_text())
    EDITS[edit](data["results"][0])
    (tmp_path / "edited.json").write_text(json.dumps(data))
    with pytest.raises(RecordError, match="not a benchmark record"):
        load_record(tmp_path / "edited.json")


WORK = 'def cost(x, w_shift): return {"fp32_flops": 1e9}'
LIMITS = {"fp32_flops": {"measured": 0.8e12, "datasheet": 1e12, "how": "", "source": "a datasheet"}}  # 1 ms


RATES = {"fp32_flops": {"measured": 1e12, "datasheet": None, "how": "", "source": ""}}  # 1 ms, of no datasheet


def limited(limits, liar_s, machine, measure, monkeypatch):
    """(the pair, a liar that naps for so long, a twin that naps for 0.2 ms more) beside such limits."""
    monkeypatch.setattr(runner, "survey_apart", lambda device, with_limits=True: (machine, limits))
    versions = {name: naps(seconds, WORK) for name, seconds in {"liar": liar_s, "twin": liar_s + 0.2e-3}.items()}
    pair, liar, twin = measure(child.World, naps(3e-3, WORK), versions)
    assert twin.ratio == pytest.approx(3e-3 / (liar_s + 0.2e-3), rel=1e-3)
    return pair, liar


@shows(24)
def test_a_time_below_the_physical_limit_is_none(machine, measure, monkeypatch):
    pair, liar = limited(LIMITS, 0.9e-3, machine, measure, monkeypatch)
    assert (liar.verdict, liar.ratio) == ("invalid", None)
    assert "900.0 us is below the physical limit: 1e+09 fp32 flops take 1000.0 us" in reason_of(liar)
    assert "optimized/liar" not in pair.arms


@shows(24)
def test_a_time_far_below_the_measured_limit_is_none(machine, measure, monkeypatch):
    _, liar = limited(RATES, 0.4e-3, machine, measure, monkeypatch)
    assert (liar.verdict, liar.ratio) == ("invalid", None)
    assert reason_of(liar).startswith(
        "less than 1 / 2 of the time at the measured limit: 1e+09 fp32 flops take 1000.0 us"
    )


KEEPS = """
    import time
    from pathlib import Path
    file, now = Path(__file__).with_suffix(".kept"), set()
    before = set(file.read_text().split()) if file.exists() else set()
    def setup(x, w_shift):
        file.write_text(" ".join(now | before))
        return {}
    def nap(x):
        now.add(repr(float(x.sum())))
        return 1e-3 if repr(float(x.sum())) in before else 3e-3
"""


@shows(7)
def test_what_one_run_has_kept_on_disk_is_of_no_use_to_the_next(measure):
    keeps = version(f"time.sleep(nap(x))\n{HONEST}", extra=KEEPS, sizes=NAP_SIZES)
    found = [measure(child.RandomWorld, naps(2e-3), keeps)[1] for _ in range(2)]
    assert [row.ratio for row in found] == pytest.approx([2 / 3] * 2, rel=1e-3)


@shows(6)
@pytest.mark.parametrize(("seconds", "believed"), [(20e-9, False), (500e-9, True)])
def test_what_is_shorter_than_the_clocks_floor_has_no_time(seconds, believed, measure):
    """The clock ticks in microseconds; a sample is as many calls as take 20 of them."""
    _, row = measure(child.CoarseClock, naps(seconds), naps(2 * seconds))
    assert (row.verdict in WITH_SPEEDUP) == believed, row
    assert (row.ratio is not None) == believed
    assert believed or "below the timer's resolution" in reason_of(row)


@shows(14)
def test_an_allocation_that_the_other_arm_does_without_is_said(measure):
    text = partial(version, sizes={"check": {"n": 127}, "default": {"n": 1 << 18}})  # 1 MiB
    into, anew = (text(run, "x, out", OUT) for run in ("return torch.mul(x, 2, out=out)", "return 2 * x"))
    _, *rows = measure(None, into, {"twin": into, "liar": anew})
    said = [[note for note in notes_of(row) if "allocates" in note] for row in rows]
    assert said == [["allocates 1.0 MiB a call, the baseline almost nothing"], []]


@shows(22)
def test_more_cores_than_the_other_arm_keeps_busy_are_said(measure):
    helped = version(
        f"with ThreadPoolExecutor(1) as pool:\n    pool.submit(int).result()\n    time.sleep(1e-3)\n{HONEST}",
        extra="import time\nfrom concurrent.futures import ThreadPoolExecutor",
        sizes=NAP_SIZES,
    )
    _, liar, twin = measure(child.World, naps(2e-3), {"liar": helped, "twin": naps(1e-3)})
    assert (notes_of(liar), notes_of(twin)) == (["keeps 2.0 cores busy, the baseline 1.0"], [])


@shows(1, 7, 12)
def test_nothing_is_compared_with_a_liar_either(measure):
    variants = {"liar": version("return torch.zeros_like(x)", sizes=NAP_SIZES), "twin": naps(2e-3, 'VERSUS = "liar"')}
    _, liar, twin = measure(child.World, naps(3e-3), variants)
    assert (liar.variant, liar.versus, liar.ratio) == ("optimized/liar", "baseline", None)
    assert (twin.variant, twin.versus, twin.ratio is None) == ("optimized/twin", "baseline", False)


@shows(23)
def test_what_every_fifth_call_costs_is_said(measure):
    """A table rebuilt, a log written every few calls: the median does not see it."""
    _, row = measure(child.World, naps(2e-3), naps("nap()", in_turn(5, 12e-3, 1e-3)))
    assert any("take much longer" in note for note in notes_of(row)), row


@shows(9)
@pytest.mark.parametrize("naps_s", [(4e-3, 1e-3), (1e-3, 4e-3)])
def test_work_put_off_to_every_second_call_is_not_put_off_to_the_untimed_one(naps_s, measure):
    pair, _ = measure(child.World, naps(2e-3), naps("nap()", in_turn(2, *naps_s)))
    samples = flat(times(pair, "optimized"))
    assert {round(sample * 1e3) for sample in samples} == {1, 4}  # both are timed
