"""The gates of what is counted: which of several faults is told first, and how an answer stands beside a count."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

from mutants.answers import text

from common.learn import answer_gates, traffic_gates
from common.learn.exercise import find
from common.learn.kernel_gates import as_pair
from common.learn.traffic_gates import repeats
from common.pairs.pair import Pair, discover
from common.show.quoted_figures import newest_figure, newest_interval
from common.traffic.data import Kernel, Traffic
from common.traffic.versions import VersionTraffic
from common.xray.picture import Picture


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (32000, "you say 32,000, counted 36,000: 1.12 times too low"),
        (35000.5, "you say 35,000.5, counted 36,000: 3% too low"),
        (35_999, "you say 35,999, counted 36,000: 1 too low"),
        (None, "None is no number. Counted 36,000"),
    ],
)
def test_what_is_said_and_what_is_counted_have_one_format(value, words):
    assert answer_gates._count_text(value, 36000.0) == words


def test_a_range_may_be_as_wide_as_is_allowed(monkeypatch):
    """0.27 / 0.18 is a little more than 1.5 in binary."""
    monkeypatch.setattr(answer_gates, "newest_figure", lambda _: "0.2x")
    gates = [answer_gates._range("ratio", (0.18, high), {"widest": 1.5, "figure": ""}) for high in (0.27, 0.28)]
    assert ["says little" in gate.text for gate in gates] == [False, True]


@pytest.mark.parametrize(
    ("interval", "low", "text"),
    [
        (None, 1.0, "1 to 1.9 does not hold the recorded 2: 5% too low"),
        ((1.92, 2.1), 1.0, "1 to 1.9 meets the interval of the recorded 2 [1.92, 2.1]"),
        ((1.92, 2.1), 2.05, "2.05 to 2.1 meets the interval of the recorded 2 [1.92, 2.1]"),
    ],
)
def test_a_recorded_ratio_is_held_by_a_range_that_meets_its_interval(interval, low, text, monkeypatch):
    monkeypatch.setattr(answer_gates, "newest_figure", lambda _: "2.0x")
    monkeypatch.setattr(answer_gates, "newest_interval", lambda _: interval)
    gate = answer_gates._range("ratio", (low, 1.9 if low < 1.9 else 2.1), {"figure": ""})
    assert gate.text == text and gate.passed is (interval is not None)


def test_the_interval_of_a_figure_is_the_rows():
    chapter, pair, variant = "ch1", "preallocation", "optimized"
    low, high = newest_interval(f"{chapter} {pair} {variant}: ratio")
    assert low <= float(newest_figure(f"{chapter} {pair} {variant}: ratio").rstrip("x")) * 1.01
    assert high >= low and newest_interval(f"{chapter} {pair} {variant}: time") is None


@pytest.fixture
def judged(monkeypatch):
    """judged(gates, kernels): what the gate of traffic says of a file whose call launches these."""

    def of(gates, *kernels):
        found = [
            VersionTraffic(label, Traffic(kernels), cost={"dram_bytes": 3200.0}) for label in ("baseline", "optimized")
        ]
        monkeypatch.setattr(traffic_gates, "count_pair", lambda *args, **options: found)
        monkeypatch.setattr(traffic_gates, "repeats", lambda *args: "loads x 2.00 times")
        (gate,) = traffic_gates.traffic(gates, Pair("ch0", "sums", None, (), {"count": {}}))
        return gate.passed, gate.text

    return of


ZEROS = Kernel("torch.zeros", launches=1, written_sectors=1)
ADDS = Kernel("add_kernel", launches=1, read_bytes=3200.0, read_sectors=100, atomics=64, max_atomics_per_address=8)
STORES = Kernel("store_kernel", launches=1, read_bytes=3200.0, read_sectors=100)


def test_atomic_operations_are_told_before_the_zeros_that_they_need(judged):
    passed, text = judged({"atomics": 0, "launches": 1}, ZEROS, STORES, ADDS)
    assert not passed and text.startswith("64 atomic operations (add_kernel), where at most 0 pass: their order")


def test_a_limit_above_0_asks_for_sums_in_registers_first(judged):
    _, text = judged({"atomics": 63}, ADDS)
    assert text.startswith("64 atomic operations (add_kernel), where at most 63 pass: at one address they wait")


def test_programs_are_those_of_the_kernel_that_does_the_work(judged):
    work, rest = (replace(STORES, programs=n, working=n, read_sectors=sectors) for n, sectors in ((3, 100), (9, 1)))
    assert judged({"programs": 3}, work, rest)[0]
    passed, text = judged({"programs": 4}, rest, work)
    assert not passed and text.startswith("3 programs (store_kernel), where at least 4 pass: ")


def test_programs_that_neither_load_nor_store_do_not_count(judged):
    assert judged({"programs": 2}, replace(STORES, programs=4, working=2))[0]
    passed, text = judged({"programs": 3}, replace(STORES, programs=4, working=2))
    share = "of which 2 share the work (25% or more of what one moves on average)"
    assert not passed and text.startswith(f"4 programs (store_kernel), {share}, where at least 3 pass: ")


def test_launches_may_be_too_few_and_repeated_ones_are_counted(judged):
    passed, text = judged({"least_launches": 2}, STORES)
    assert not passed and text.startswith("1 launch, where 2 are asked for: ")
    twice = replace(STORES, launches=2)
    assert judged({"least_launches": 2}, twice)[0]
    _, text = judged({"launches": 2}, twice, ADDS)
    assert text == "3 launches, where 2 are enough: 2 times store_kernel, add_kernel"


def test_a_call_that_launches_nothing_has_no_program(judged):
    passed, text = judged({"programs": 2}, *())
    assert not passed and text.startswith("0 programs (no kernel), where at least 2 pass: ")


@pytest.mark.parametrize("gates", [{"sectors": 1.0}, {"launches": 1}])
def test_no_traffic_passes_where_the_least_is_not_known(gates, monkeypatch):
    counted = [VersionTraffic("optimized", Traffic([STORES]))] * 2
    monkeypatch.setattr(traffic_gates, "count_pair", lambda *args, **options: counted)
    (gate,) = traffic_gates.traffic(gates, Pair("ch0", "sums", None, (), {"count": {}}))
    assert not gate.passed and "`cost` of the solution has to name its bytes" in gate.text


@pytest.mark.parametrize(
    ("wanted", "passed", "words"),
    [
        (1.6, True, "traffic 1.00x of the least (100 sectors), 1 launch; at n=7, step=9: traffic 1.50x of the least"),
        (1.4, False, "at n=7, step=9: traffic 1.50x of the least (150 sectors), 1 launch; at most 1.40x passes"),
    ],
)
def test_traffic_is_judged_at_the_other_sizes_that_a_gate_names(wanted, passed, words, monkeypatch):
    def counted(pair, size, *args, **options):
        traffic = Traffic([replace(STORES, read_sectors=150 if size == "check/apart" else 100)])
        return [VersionTraffic("optimized", traffic, cost={"dram_bytes": 3200.0})] * 2

    monkeypatch.setattr(traffic_gates, "count_pair", counted)
    monkeypatch.setattr(traffic_gates, "repeats", lambda *args: "")
    pair = Pair("ch0", "sums", None, (), {"count": {}, "check/apart": {"n": 7, "step": 9}})
    (gate,) = traffic_gates.traffic({"sectors": wanted, "counted_at": ["check/apart"]}, pair)
    assert gate.passed is passed and gate.text.startswith(words)
    (unknown,) = traffic_gates.traffic({"sectors": 1.0, "counted_at": ["check/none"]}, pair)
    assert (unknown.passed, unknown.text) == (False, "counted_at: there is no size check/none")


@pytest.mark.parametrize(("most", "kernel"), [(0, STORES), (64, ADDS)])
def test_as_many_atomic_operations_as_the_gate_says_pass(judged, most, kernel):
    text = "traffic 1.00x of the least (100 sectors, which this exercise does not limit), 1 launch"
    assert judged({"atomics": most}, kernel) == (True, text)


def test_without_the_gate_atomic_operations_are_not_judged(judged):
    passed, text = judged({"launches": 1}, ZEROS, ADDS)
    assert not passed and text == "2 launches, where 1 is enough: torch.zeros, add_kernel"


@pytest.mark.parametrize(
    ("at_wide", "words"),
    [
        (100, "sm_80: loads of 128 bits, 0 spills; sm_80 at size check/wide: loads of 32 bits, 87 spills"),
        (86, "87 spills on sm_80 at size check/wide, where at most 86 pass: a block of V values in 4 warps is"),
    ],
)
def test_spills_are_judged_at_other_sizes_and_the_width_of_loads_is_not(at_wide, words, monkeypatch):
    def look(pair, architectures, size):
        spills, bits = (87, 32) if size == "check/wide" else (0, 128)
        return [Picture("optimized", "sm_80", [SimpleNamespace(spills=spills, threads=128, widest=lambda what: bits)])]

    monkeypatch.setattr(traffic_gates, "xray", look)
    pair = Pair("ch0", "sums", None, (None,), {"default": {}, "check/wide": {}})
    (gate,) = traffic_gates.code({"spills": 0, "load_bits": 128, "spills_at": {"check/wide": at_wide}}, pair)
    assert gate.passed is (at_wide == 100) and gate.text.startswith(words)
    (alone,) = traffic_gates.code({"spills_at": {"check/wide": at_wide}}, pair)
    assert alone.passed is gate.passed
    (unknown,) = traffic_gates.code({"spills_at": {"check/nosuch": 0}}, pair)
    assert (unknown.passed, unknown.text) == (False, "spills_at: there is no size check/nosuch")


@pytest.mark.parametrize(
    ("sectors", "words"),
    [
        (200, r"It uses only 50% of each sector: are the lanes of a warp side by side\?$"),
        (120, r"It uses 83% of each sector and reads and writes 1\.00x of the .* needed: it loads x 2\.00 times$"),
        (101, r"It reads and writes 1\.00x of the bytes that are needed: it loads x 2\.00 times$"),
    ],
)
def test_lanes_are_said_to_lie_apart_only_where_little_of_each_sector_is_used(sectors, words, judged):
    passed, text = judged({"sectors": 1.0}, Kernel("k", launches=1, read_bytes=3200.0, read_sectors=sectors))
    assert not passed and re.search(words, text), text


@pytest.mark.parametrize(
    ("exercise", "name", "least", "words"),
    [
        ("ch1/fuse", "loads_x_twice", 4 * 32_768, "loads x 2.00 times (0.500x of the least)"),
        (
            "ch0/linear",
            "small_tiles",
            40_960,
            "loads x 8.00 times (1.60x of the least), loads weight 4.00 times (1.60x of the least)",
        ),
        ("ch0/distances", "row_programs", 50_048, "loads b 96.0 times (0.982x of the least)"),
        ("ch1/ragged", "programs_without_a_tile", 100_000, "loads table "),
        ("ch1/fuse", None, 4 * 32_768, ""),
    ],
)
def test_arrays_that_are_asked_for_more_than_once_are_named(exercise, name, least, words, tmp_path):
    known, path = find(exercise), tmp_path / "answer.py"
    path.write_text(text(known, name) if name else known.solution.read_text())
    with as_pair(known, path) as folder:
        (pair,) = discover(folder)
        found = repeats(pair, "count", least)
    assert words in found and bool(words) == bool(found), found
