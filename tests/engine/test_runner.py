"""What a run and its record are made of. (Versions that lie: liars/; that die: test_faults.py.)"""

import re
from functools import partial
from itertools import pairwise
from textwrap import indent

import pytest
from samples import HONEST, VECTOR, one_pair, row_of, version, write_pair

from common.engine import runner
from common.engine.runner import sizes_of
from common.pairs.pair import discover
from common.record import stats
from common.record.result import BELIEVED, load_record, save_record
from common.show import summary, tables

run_pairs = partial(runner.run_pairs, device="cpu")


KERNEL = """
import triton
import triton.language as tl

def reference(x, w_shift):
    return 2 * x + w_shift

@triton.jit
def double(x, shift, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)  # itself a function that Triton would compile
    tl.store(y + at, total + 2 * tl.load(x + at, mask=at < n) + tl.load(shift), mask=at < n)
"""


def test_a_triton_kernel_is_verified_in_the_interpreter(machine, tmp_path):
    pytest.importorskip("triton")
    run = "y = torch.empty_like(x)\ndouble[(triton.cdiv(len(x), 64),)](x, w_shift, y, len(x), BLOCK=64)\nreturn y"
    row = row_of(run_pairs([one_pair(tmp_path, version(run, extra=KERNEL))]), "double")
    assert (row.verdict, row.reason) == (
        "checked",
        "verified at the check sizes, kernels in Triton's interpreter; timing needs a GPU",
    )


def test_a_run_of_checks_times_nothing(machine, tmp_path):
    record = run_pairs([one_pair(tmp_path)], check_only=True)
    assert [(row.verdict, row.ratio) for row in record.pairs[0].rows] == [("checked", None)]
    assert record.pairs[0].arms == {}


def test_what_a_version_leaves_behind_when_it_dies_is_not_the_next_ones(machine, tmp_path):
    dies = version("torch.set_default_dtype(torch.float64)\nraise ValueError('no kernel')")
    write_pair(tmp_path, "double", {"dies": dies, "lives": version()})
    record = run_pairs(discover(tmp_path), check_only=True)
    assert {row.variant: row.verdict for row in record.pairs[0].rows} == {
        "optimized/dies": "died",
        "optimized/lives": "checked",
    }


SLEEPS = {name: f"import time\ntime.sleep({ms}e-3)\n{HONEST}" for name, ms in {"slow": 6, "base": 3, "fast": 1}.items()}
LIBRARIES = """
def library(x, w_shift):
    return torch.add(w_shift, x, alpha=2)
def library_wrong(x, w_shift):
    return 2 * x
def library_dead(x, w_shift):
    raise RuntimeError("no kernel image")
def cost(x, w_shift):
    return {"dram_bytes": 2 * x.nbytes}
"""


@pytest.fixture(scope="module")
def measured(machine, tmp_path_factory):
    """One pair with known sleeps: its record, as it comes out of its file, and all that was reported meanwhile."""
    folder, seen = tmp_path_factory.mktemp("measured"), []
    in_tf32 = 'PRECISION = "tf32"\ndef library_tf32(x, w_shift): return torch.add(w_shift, x, alpha=2)'
    variants = {
        "faster": version(SLEEPS["fast"], extra=in_tf32),
        "slower": version(SLEEPS["slow"], extra='VERSUS = "faster"'),
    }
    write_pair(folder, "naps", variants, version(SLEEPS["base"], extra=LIBRARIES))
    limits = {"dram_bytes": {"measured": 2 * 4 * 4096 / 0.5e-3, "datasheet": None, "how": "", "source": ""}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: (machine, limits))
        found = run_pairs(
            discover(folder), fast=True, on_progress=lambda *say: seen.append(say[2]), on_record=seen.append
        )
    save_record(found, folder / "r.json")
    return load_record(folder / "r.json"), seen


def test_planted_ratios_are_found(measured):
    rows = {(row.variant.removeprefix("optimized/"), row.versus): row for row in measured[0].pairs[0].rows}
    assert {key: row.verdict for key, row in rows.items()} == {
        ("faster", "baseline"): "faster",
        ("slower", "baseline"): "slower",
        ("slower", "optimized/faster"): "slower",
    }
    assert 1.5 < rows["faster", "baseline"].ratio < 3.1  # 3 ms over 1 ms, and what a nap is too long
    assert 0.45 < rows["slower", "baseline"].ratio < 0.8
    assert rows["slower", "optimized/faster"].ratio < rows["slower", "baseline"].ratio
    assert {row.precision for key, row in rows.items() if key[0] == "faster"} == {"tf32"}


def test_libraries_are_arms_and_a_wrong_one_is_a_note(measured):
    for row in measured[0].pairs[0].rows:
        assert row.vs_library["library"]["ratio"] < 1  # it takes no nap
        assert any(note.startswith("library/wrong: wrong answer") for note in row.notes)
        assert any(note.startswith("library/dead: RuntimeError: no kernel image") for note in row.notes)


def test_a_library_of_a_lower_precision_is_compared_with_variants_of_that_precision_alone(measured):
    rows = {row.variant: {name: of.get("precision", "") for name, of in row.vs_library.items()}
            for row in measured[0].pairs[0].rows}  # fmt: skip
    assert rows == {"optimized/slower": {"library": ""}, "optimized/faster": {"library": "", "library/tf32": "tf32"}}


def test_every_verdict_can_be_computed_again_from_the_samples(measured):
    (pair,) = measured[0].pairs
    seconds = {label: arm.seconds for label, arm in pair.arms.items()}
    assert stats.noise_floor(seconds["baseline"], seconds["repeat"]) == pytest.approx(pair.noise_floor)
    for row in pair.rows:
        again = stats.estimate(seconds[row.versus], seconds[row.variant])
        assert (again.ratio, (again.low, again.high)) == (pytest.approx(row.ratio), pytest.approx(row.interval))
        assert stats.verdict(again, pair.noise_floor) == (row.verdict, row.reason)
        library = stats.estimate(seconds["library"], seconds[row.variant])
        assert library.ratio == pytest.approx(row.vs_library["library"]["ratio"])
    for arm in pair.arms.values():
        assert stats.overall_median(arm.seconds) == pytest.approx(arm.median_s)


def test_every_round_runs_every_arm_once_in_balanced_order(measured):
    (pair,) = measured[0].pairs
    assert len(pair.orders) >= 6
    for block in pair.orders:
        assert all(sorted(order) == sorted(pair.arms) for order in block)
        assert all(second == [*first[1:], first[0]] for first, second in pairwise(block))
    assert len({tuple(block[0]) for block in pair.orders}) > 1  # and it is drawn anew
    for arm in pair.arms.values():
        assert [len(block) for block in arm.seconds] == [len(block) for block in pair.orders]


def test_each_time_stands_beside_its_limit(measured):
    (pair,) = measured[0].pairs
    assert (pair.limit_s, pair.limit_by) == (pytest.approx(0.5e-3), "dram_bytes")
    assert pair.cost == {"dram_bytes": 2 * 4 * 4096}
    for arm in pair.arms.values():
        assert arm.of_limit == pytest.approx(0.5e-3 / arm.median_s)
        assert arm.of_datasheet is None


def test_progress_goes_from_loading_over_checks_and_pilot_to_blocks(measured):
    *stages, record = measured[1]
    assert list(dict.fromkeys(stage.split()[0] for stage in stages)) == ["start", "load", "check", "pilot", "block"]
    assert [pair.name for pair in record.pairs] == ["naps"]


def test_inputs_are_drawn_anew_for_every_block(measured):
    (pair,) = measured[0].pairs
    assert len(pair.seeds) > len(pair.orders)
    assert len(set(pair.seeds)) == len(pair.seeds)


def test_ctrl_c_keeps_the_pairs_that_were_done(machine, tmp_path):
    for name in ("first", "second", "third"):
        write_pair(tmp_path, name, version())
    kept = []

    def interrupt(pair, size, stage, fraction):
        if pair.name == "second" and stage.startswith("block"):
            raise KeyboardInterrupt

    record = run_pairs(discover(tmp_path), fast=True, on_progress=interrupt, on_record=kept.append)
    assert [pair.name for pair in record.pairs] == ["first"]
    assert record.environment["interrupted"]
    assert [[pair.name for pair in one.pairs] for one in kept] == [["first"]]


def test_a_baseline_that_raises_leaves_nothing_to_compare_with(machine, tmp_path):
    raising = version('raise ValueError("no such luck")')
    row = row_of(run_pairs([one_pair(tmp_path, baseline=raising)], fast=True), "double")
    assert (row.verdict, row.ratio) == ("died", None)
    assert re.search(r"ValueError: no such luck \(baseline_double.py:\d+\)$", row.reason)


def test_an_oracle_that_disagrees_with_both_versions_condemns_the_baseline(machine, tmp_path):
    wrong = version("return 3 * x + w_shift", extra="def reference(x, w_shift): return 2 * x + w_shift")
    row = row_of(run_pairs([one_pair(tmp_path, wrong, wrong)], check_only=True), "double")
    assert row.verdict == "invalid"
    assert row.reason.startswith("the baseline: wrong answer at size check")


@pytest.mark.parametrize(("times", "verdict"), [("2", "checked"), ("3", "invalid")])
def test_an_oracle_of_leading_rows_judges_those_and_gets_float64(times, verdict, machine, tmp_path):
    oracle = """
        def reference(x, w_shift, rows):
            assert x.dtype == w_shift.dtype == torch.float64
            return (2 * x + w_shift)[:rows]
    """
    record = run_pairs(
        [one_pair(tmp_path, version(extra=oracle), version(f"return {times} * x + w_shift", extra=oracle))],
        check_only=True,
    )
    assert row_of(record, "double").verdict == verdict


def test_every_check_size_is_run(machine, tmp_path):
    sizes = {"check": {"n": 128}, "check/odd": {"n": 129}, "default": {"n": 128}}
    liar = version("y = 2 * x + w_shift\ny[len(x) // 2 * 2:] = 0\nreturn y", sizes=sizes)
    row = row_of(run_pairs([one_pair(tmp_path, liar, version(sizes=sizes))], check_only=True), "double")
    assert row.reason.startswith("wrong answer at size check/odd")


@pytest.mark.parametrize(("precision", "verdict"), [("", "invalid"), ('PRECISION = "bf16"', "checked")])
def test_lower_precision_passes_where_it_is_declared(precision, verdict, machine, tmp_path):
    pair = one_pair(tmp_path, version("return (2 * x.bfloat16() + w_shift.bfloat16()).float()", extra=precision))
    row = row_of(run_pairs([pair], check_only=True), "double")
    assert row.verdict == verdict
    assert row.precision == ("bf16" if precision else "")


def test_a_library_that_may_differ_is_not_judged(machine, tmp_path):
    extra = 'LIBRARY_DIFFERS = "draws random numbers"\ndef library(x, w_shift): return torch.rand_like(x)'
    (row,) = run_pairs([one_pair(tmp_path, version(extra=extra))], fast=True).pairs[0].rows
    assert list(row.vs_library) == ["library"]


def test_a_yardstick_is_timed_and_neither_judged_nor_a_library(machine, tmp_path):
    extra = "def yardstick_copy(x, w_shift): return x.clone()\ndef library(x, w_shift): return 2 * x + w_shift"
    found = run_pairs([one_pair(tmp_path, version(extra=extra))], fast=True)
    (row,) = found.pairs[0].rows
    assert set(row.vs_library) == {"library", "yardstick/copy"}
    assert "copy yardstick" in tables.libraries(found.pairs[0], row)
    assert summary.fastest_library(found.pairs[0], row) == (row.vs_library["library"]["ratio"], "library")


def test_placement_may_be_the_lesson(machine, tmp_path):
    """A variant whose input is strided gets the same values in its own placement."""
    matrix = 'return {{"x": torch.randn(n, 7, device=device){}}}'
    pair = one_pair(
        tmp_path,
        version("return x.sum(1)", "x", matrix.format(".T.contiguous().T")),
        version("return x.sum(1)", "x", matrix.format("")),
    )
    (row,) = run_pairs([pair], fast=True).pairs[0].rows
    assert row.verdict in BELIEVED, row.reason


SWEEP = {"check": {}, "default": {}, "small/a": {}, "small/b": {}, "smaller": {}, "cpu": {}}


@pytest.mark.parametrize(
    ("wanted", "on_cpu", "expected"),
    [
        ("default", False, ["default"]),
        ("default", True, ["cpu"]),
        ("small", False, ["small/a", "small/b"]),
        ("small/b", False, ["small/b"]),
        ("all", False, ["default", "small/a", "small/b", "smaller"]),
        ("all", True, ["small/a", "small/b", "smaller", "cpu"]),
        ("small/b,default", False, ["default", "small/b"]),
        ("default,small,small/a", True, ["small/a", "small/b", "cpu"]),
        ("check", False, []),
        ("check,smaller", False, ["smaller"]),
        ("none", False, []),
    ],
)
def test_the_sizes_that_a_name_selects(wanted, on_cpu, expected, tmp_path):
    pair = one_pair(tmp_path, version(sizes=SWEEP), version(sizes=SWEEP))
    assert sizes_of(pair, wanted, on_cpu) == expected


def test_a_sweep_has_a_result_for_every_size(machine, tmp_path):
    sizes = {"check": {"n": 7}, "default": {"n": 8}, "small/a": {"n": 9}, "small/b": {"n": 10}}
    record = run_pairs([one_pair(tmp_path, version(sizes=sizes), version(sizes=sizes))], size="all", check_only=True)
    assert [(pair.size, pair.sizes) for pair in record.pairs] == [(size, sizes[size]) for size in list(sizes)[1:]]


def test_what_is_not_timed_is_checked_once_a_sweep(machine, tmp_path):
    record, judged = swept(tmp_path, version(sizes=EVEN), check_only=True)
    assert [[row.verdict for row in result.rows] for result in record.pairs] == [["checked"]] * 3
    assert [result.sizes for result in record.pairs] == [EVEN[result.size] for result in record.pairs]
    assert judged == ["default"]


EVEN = {"check": {"n": 127}, "default": {"n": 4096}, "small/a": {"n": 512}, "small/b": {"n": 1024}}
WRONG_IF_ODD = "y = 2 * x + w_shift\nif len(x) % 2: y[-1] = 0\nreturn y"


def swept(folder, optimized, baseline=None, **options):
    """A pair at all sizes: the record, and at which of them its answers at the check sizes were judged."""
    pair = one_pair(folder, optimized, version(sizes=EVEN) if baseline is None else baseline)
    judged = {}

    def listen(pair, size, stage, fraction):
        if stage == "check":
            judged[size] = None

    record = run_pairs([pair], size="all", fast=True, on_progress=listen, **options)
    assert [result.size for result in record.pairs] == ["default", "small/a", "small/b"]
    return record, list(judged)


def test_the_check_sizes_are_judged_once_a_sweep_where_all_arms_pass(machine, tmp_path):
    record, judged = swept(tmp_path, version(sizes=EVEN, extra="def library(x, w_shift): return 2 * x + w_shift"))
    assert {row.verdict for result in record.pairs for row in result.rows} <= set(BELIEVED)
    assert [list(row.vs_library) for result in record.pairs for row in result.rows] == [["library"]] * 3
    assert judged == ["default"]
    write_pair(tmp_path, "other", version(sizes=EVEN), version(sizes=EVEN))
    assert len(swept(tmp_path, version(sizes=EVEN))[1]) == 1  # another run relies on nothing


def test_a_liar_that_is_wrong_only_at_a_check_size_is_invalid_at_every_size(machine, tmp_path):
    record, judged = swept(tmp_path, version(WRONG_IF_ODD, sizes=EVEN))
    assert [row.verdict for result in record.pairs for row in result.rows] == ["invalid"] * 3
    assert all(row.reason.startswith("wrong answer at size check") for result in record.pairs for row in result.rows)
    assert judged == ["default", "small/a", "small/b"]


def test_an_honest_variant_does_not_vouch_for_a_liar_beside_it(machine, tmp_path):
    write_pair(tmp_path, "double", {"liar": version(WRONG_IF_ODD, sizes=EVEN)})
    record, _ = swept(tmp_path, version(sizes=EVEN))
    found = [{row.variant: row.verdict for row in result.rows} for result in record.pairs]
    assert [rows["optimized/liar"] for rows in found] == ["invalid"] * 3
    assert all(rows["optimized"] in BELIEVED for rows in found)


@pytest.mark.parametrize(("wrong_at", "compared"), [("first", False), ("second", True), ("timed", False)])
def test_a_library_is_judged_at_the_first_check_size_and_where_it_is_timed(machine, tmp_path, wrong_at, compared):
    sizes = {"check": {"n": 128}, "check/other": {"n": 127}, "default": {"n": 4096}}
    length = dict(zip(("first", "second", "timed"), (128, 127, 4096), strict=True))[wrong_at]
    library = f"def library(x, w_shift): return (2 if len(x) != {length} else 3) * x + w_shift"
    (row,) = (
        run_pairs([one_pair(tmp_path, version(sizes=sizes, extra=library), version(sizes=sizes))], fast=True)
        .pairs[0]
        .rows
    )
    assert row.verdict in BELIEVED
    assert bool(row.vs_library) == compared


@pytest.mark.parametrize(("length", "compared"), [(127, False), (4096, True)])
def test_a_library_is_called_with_memory_filled_at_the_first_check_size_alone(machine, tmp_path, length, compared):
    """Where it was timed torch.compile would compile anew for it."""
    where = f"len(x) == {length} and torch.are_deterministic_algorithms_enabled()"
    library = f"def library(x, w_shift): return torch.zeros_like(x) if {where} else 2 * x + w_shift"
    (row,) = run_pairs([one_pair(tmp_path, version(extra=library))], fast=True).pairs[0].rows
    assert bool(row.vs_library) == compared
    assert any("library: wrong answer at size check with uninit" in note for note in row.notes) == (not compared)


def test_a_library_that_is_wrong_only_at_a_check_size_is_compared_with_at_none(machine, tmp_path):
    library = f"def library(x, w_shift):\n{indent(WRONG_IF_ODD, '    ')}"
    record, _ = swept(tmp_path, version(sizes=EVEN, extra=library))
    for row in (row for result in record.pairs for row in result.rows):
        assert row.vs_library == {}
        assert any(note.startswith("library: wrong answer at size check") for note in row.notes)


def test_a_size_that_was_not_timed_vouches_for_none_after_it(machine, tmp_path):
    does_not_fit = version(inputs=f"if n == 4096: raise MemoryError\n{VECTOR}", sizes=EVEN)
    record, judged = swept(tmp_path, does_not_fit, does_not_fit)
    first, *others = [result.rows[0].verdict for result in record.pairs]
    assert first == "skipped"
    assert set(others) <= set(BELIEVED)
    assert judged == ["default", "small/a"]


def test_where_nothing_is_timed_every_size_is_checked(machine, tmp_path):
    record, judged = swept(tmp_path, version(WRONG_IF_ODD, sizes=EVEN), check_only=True)
    assert [row.verdict for result in record.pairs for row in result.rows] == ["invalid"] * 3
    assert judged == ["default", "small/a", "small/b"]


def test_the_timed_size_is_judged_at_every_size(machine, tmp_path):
    """Both versions are wrong at one of them: only the oracle can tell."""
    oracle = "def reference(x, w_shift): return 2 * x + w_shift"
    wrong = version(WRONG_IF_ODD.replace("% 2", "== 512"), sizes=EVEN, extra=oracle)
    record, judged = swept(tmp_path, wrong, wrong)
    first, at_512, last = [result.rows[0] for result in record.pairs]
    assert (at_512.verdict, judged) == ("invalid", ["default"])
    assert at_512.reason.startswith("the baseline: wrong answer at the timed size")
    assert {first.verdict, last.verdict} <= set(BELIEVED)


def test_default_stays_default_on_a_cpu_where_there_is_no_other(tmp_path):
    assert sizes_of(one_pair(tmp_path), "default", on_cpu=True) == ["default"]
