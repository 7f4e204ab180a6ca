"""What becomes of a pair in a run. (Versions that lie: liars/; that die: test_faults.py; that nap: test_times.py.)"""

import math
import re
from functools import partial

import pytest
import torch
from liars.child import measure_quickly, measured
from samples import HONEST, VECTOR, notes_of, one_pair, reason_of, row_of, version, write_pair

from common.engine import runner
from common.machine.limits import cost_problem
from common.pairs.contract import DRAWS
from common.pairs.pair import discover, sizes_of
from common.record.outcome import WITH_SPEEDUP
from common.show import summary, tables

run_pairs = partial(runner.run_pairs, device="cpu")


@pytest.fixture
def run(machine, tmp_path, monkeypatch):
    """run(optimized, baseline, ...): the record of the pair of these texts, from few and short samples."""
    return lambda *texts, **options: measured([one_pair(tmp_path, *texts)], monkeypatch, measure_quickly, **options)


COST = "import math\ndef cost(x, w_shift): return {'dram_bytes': 8 * math.prod(x.shape)}"
KERNEL = """
import triton
import triton.language as tl

def reference(x, w_shift):
    return 2 * x + w_shift

@triton.jit
def double(x, shift, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * tl.cast(BLOCK, tl.int64) + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)  # itself a function that Triton would compile
    tl.store(y + at, total + 2 * tl.load(x + at, mask=at < n) + tl.load(shift), mask=at < n)
"""
LAUNCH = (
    "x, w_shift = x.contiguous(), w_shift.contiguous()\ny = torch.empty_like(x)\n"
    "double[(triton.cdiv(len(x), 64),)](x, w_shift, y, len(x), BLOCK=64)\nreturn y"
)
SAME = 'return {"x": torch.linspace(0, 1, n, device=device), "w_shift": torch.zeros(1, device=device)}'
LEADING = """
    def reference(x, w_shift, rows):
        assert x.dtype == w_shift.dtype == torch.float64
        return (2 * x + w_shift)[:rows]
"""
THRICE = "return 3 * x + w_shift"
ORACLE = "def reference(x, w_shift): return 2 * x + w_shift"
MORE = {"check": {"n": 128}, "check/odd": {"n": 129}, "default": {"n": 128}}
BF16 = "return (2 * x.bfloat16() + w_shift.bfloat16()).float()"
CHECKED = {  # the variant, the baseline (None: 2 * x + w_shift), what is said of it
    "right": (None, None, "verified", "^$"),
    "a kernel": (version(LAUNCH, extra=KERNEL), None, "verified",
                 "^verified at the check sizes, kernels in Triton's interpreter; timing needs a GPU$"),
    "a kernel of inputs that never change": (version(LAUNCH, inputs=SAME, extra=KERNEL),
                                             version(f"{LAUNCH} + 0", inputs=SAME, extra=KERNEL), "invalid",
                                             "^the baseline: .*: an answer to other inputs would pass"),
    "a baseline that raises": (None, version('raise ValueError("no such luck")'), "crashed",
                               r"ValueError: no such luck \(baseline_double.py:\d+\)$"),
    "an oracle that is neither's": (version(THRICE, extra=ORACLE), version(THRICE, extra=ORACLE), "invalid",
                                    "^the baseline: wrong answer at size check"),
    "right by leading rows": (version(extra=LEADING), version(extra=LEADING), "verified", "^$"),
    "wrong by leading rows": (version(extra=LEADING), version(THRICE, extra=LEADING), "invalid", "wrong answer"),
    "wrong at another check size": (version("y = 2 * x + w_shift\ny[len(x) // 2 * 2:] = 0\nreturn y"),
                                    version(sizes=MORE), "invalid", "^wrong answer at size check/odd"),
    "a lower precision": (version(BF16), None, "invalid", "wrong answer"),
    "a lower precision that is declared": (version(BF16, extra='PRECISION = "bf16"'), None, "verified", "^$"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHECKED)
def test_a_run_of_checks_judges_and_times_nothing(what, run):
    optimized, baseline, verdict, reason = CHECKED[what]
    record = run(optimized, baseline, check_only=True)
    row = row_of(record, "double")
    assert (row.verdict, row.ratio, record.pairs[0].arms) == (verdict, None, {})
    assert re.search(reason, reason_of(row)), row
    assert row.precision == ("bf16" if "declared" in what else "")


NOTHING = "must return a dict, not NoneType"
PARAMETERS = "its parameters must be what `inputs` returns: x, w_shift"
BROKEN_BASELINES = {  # the baseline, what is said after the file's name
    "inputs": (version(inputs="x = torch.randn(n)"), f"`inputs` {NOTHING}"),
    "amount": (version(extra="def cost(x, w_shift): return x.nbytes"), "`cost` must return a dict, not int"),
    "reference": (version(extra="def reference(x, w_shift): ..."), "`reference` must return the answer, not None"),
    "answer": (version("y = 2 * x"), "`run` must return the answer, not None"),
    "reference_takes": (version(extra="def reference(x): return 2 * x"), f"`reference` takes x: {PARAMETERS}"),
}
BROKEN_VARIANTS = {
    "inputs": (version(inputs="x = torch.randn(n)"), f"`inputs` {NOTHING}"),
    "setup": (version(extra="def setup(x, w_shift): ..."), f"`setup` {NOTHING}"),
    "run_takes": (version("return 2 * x + shift", "x, shift"), f"`run` takes x, shift: {PARAMETERS}"),
    "setup_takes": (version(extra="def setup(): return {}"), f"`setup` takes nothing: {PARAMETERS}"),
    "state": (version(extra='def setup(x, w_shift): return {"y": x}'),
              "`run` takes x, w_shift: its parameters must be what `inputs` and `setup` return: x, w_shift, y"),
    "state_twice": (version(extra='def setup(x, w_shift): return {"x": x}'),
                    "`setup` returns x, as `inputs` does: give it another name"),
}  # fmt: skip


def test_what_a_function_does_not_take_or_return_is_said_with_its_file(machine, tmp_path):
    expected = {}
    for name, (text, said) in BROKEN_BASELINES.items():
        write_pair(tmp_path, f"of_{name}", version(), text)
        expected[f"baseline_of_{name}.py"] = said
    for name, (text, said) in BROKEN_VARIANTS.items():
        write_pair(tmp_path, name, text)
        expected[f"optimized_{name}.py"] = said
    rows = [row for pair in run_pairs(discover(tmp_path), check_only=True).pairs for row in pair.rows]
    reasons = [reason_of(row) for row in rows if row.verdict == "invalid"]
    assert [file for file, said in expected.items() if not any(f"{file}: {said}" in each for each in reasons)] == []
    assert len(rows) == len(reasons) == len(expected)


@pytest.mark.parametrize(
    ("optimized", "baseline", "said"),
    [
        (version(), None, "is a copy of the baseline"),
        (version(), version(extra=COST), "is a copy of the baseline"),  # and leaves the cost to it
        (version(extra=KERNEL), version("return x + x + w_shift"), "launches no kernel of its own: .* a library"),
        (version("return x + x + w_shift"), version(LAUNCH, extra=KERNEL), "launches no kernel of its own"),
        (version(LAUNCH, extra=KERNEL), None, None),
    ],
)
def test_a_version_that_does_nothing_of_its_own_is_named(optimized, baseline, said, run):
    row = row_of(run(optimized, baseline, check_only=True), "double")
    assert row.verdict == "verified"
    assert (said is None and not notes_of(row)) or re.match(said, *notes_of(row))


def test_a_draw_that_a_version_leaves_out_is_not_held_against_it(run):
    clamped = "return 2 * x.clamp(-50, 50) + w_shift"
    assert row_of(run(version(clamped), check_only=True), "double").verdict == "invalid"
    large = {draw: "it saturates" for draw in DRAWS if "100" in draw or "10,000" in draw or "inf" in draw}
    row = row_of(run(version(clamped, extra=f"STRESS = {large}"), check_only=True), "double")
    assert row.verdict == "verified", row


CENTER = "return x - x.mean(0)"
MATRIX = "return {'x': torch.randn(n, 320, device=device)}"


@pytest.mark.parametrize(
    ("optimized", "verdict"),
    [("return x - (x / 3).sum(0) / (len(x) / 3)", "verified"), ("return x - 0.9 * x.mean(0)", "invalid")],
)
def test_rounding_where_equal_rows_cancel_is_no_error(optimized, verdict, run):
    """Of an expanded array the right answer is 0, and the baseline's is exact: half of twice a value is the value."""
    form = {"arguments": "x", "inputs": MATRIX, "sizes": {"check": {"n": 2}, "default": {"n": 2}}}
    record = run(version(optimized, **form), version(CENTER, **form), check_only=True)
    assert row_of(record, "double").verdict == verdict


def test_a_kernel_is_not_timed_in_the_interpreter(run):
    row = row_of(run(version(LAUNCH, extra=KERNEL)), "double")
    assert (row.verdict, f"^{reason_of(row)}$") == CHECKED["a kernel"][2:]


def test_what_a_version_leaves_behind_when_it_dies_is_not_the_next_ones(machine, tmp_path):
    dies = version("torch.set_default_dtype(torch.float64)\nraise ValueError('no kernel')")
    write_pair(tmp_path, "double", {"dies": dies, "lives": version()})
    record = run_pairs(discover(tmp_path), check_only=True)
    assert [row.verdict for row in record.pairs[0].rows] == ["crashed", "verified"]


def test_ctrl_c_keeps_the_pairs_that_were_done(machine, tmp_path, monkeypatch):
    for name in ("first", "second", "third"):
        write_pair(tmp_path, name, version())
    kept = []

    def interrupt(pair, size, stage, fraction):
        if pair.name == "second" and stage.startswith("block"):
            raise KeyboardInterrupt

    callbacks = {"on_progress": interrupt, "on_record": kept.append}
    record = measured(discover(tmp_path), monkeypatch, measure_quickly, **callbacks)
    assert [pair.name for pair in record.pairs] == ["first"]
    assert record.environment["interrupted"]
    assert [[pair.name for pair in one.pairs] for one in kept] == [["first"]]


def test_a_library_that_may_differ_is_not_judged(run):
    extra = 'LIBRARY_DIFFERS = "draws random numbers"\ndef library(x, w_shift): return torch.rand_like(x)'
    assert list(row_of(run(version(extra=extra), fast=True), "double").vs_library) == ["library"]


def test_a_yardstick_is_timed_and_neither_judged_nor_a_library(run):
    extra = "def yardstick_copy(x, w_shift): return x.clone()\ndef library(x, w_shift): return 2 * x + w_shift"
    found = run(version(extra=extra), fast=True)
    (row,) = found.pairs[0].rows
    assert set(row.vs_library) == {"library", "yardstick/copy"}
    assert "copy ceiling" in tables.libraries(found.pairs[0], row)
    assert summary.fastest_library(found.pairs[0], row) == (row.vs_library["library"]["ratio"], "library")


OFF = "return (2 * x + w_shift) * (1 + 2**-20)"  # eight units in float32's last place


def errors(arm):
    return arm.max_error, arm.rms_error


def test_errors_against_the_oracle_stand_beside_every_answer_that_it_judges(run):
    extra = "def yardstick_copy(x, w_shift): return x.clone()\ndef library(x, w_shift): return 2 * x + w_shift"
    arms = run(version(OFF), version(extra=extra), fast=True).pairs[0].arms
    largest, rms = errors(arms["optimized"])
    assert rms == pytest.approx(2**-20, rel=0.1) and 2 * rms < largest < 6 * rms, "that of the largest of 4096 values"
    for label in ("baseline", "library"):
        largest, rms = errors(arms[label])
        assert 0 < rms < largest < 1e-6, "rounding of float32"
    assert errors(arms["yardstick/copy"]) == errors(arms["control"]) == (None, None)


def test_of_several_arrays_the_worst_error_counts_and_integers_have_none(run):
    off = "y = 2 * x + w_shift\nreturn x > 0, y, y * (1 + 2**-20)"
    exact = "return x > 0, 2 * x + w_shift, 2 * x + w_shift"
    arms = run(version(off), version(exact), fast=True).pairs[0].arms
    assert arms["optimized"].rms_error == pytest.approx(2**-20, rel=0.1)
    signs = run(version("return 0 < x"), version("return x > 0"), fast=True).pairs[0].arms
    assert errors(signs["optimized"]) == (0.0, 0.0)


def test_placement_may_be_the_lesson(run):
    """A variant whose input is strided gets the same values in its own placement."""
    matrix = 'return {{"x": torch.randn(n, 7, device=device){}}}'
    texts = [version("return x.sum(1)", "x", matrix.format(placed)) for placed in (".T.contiguous().T", "")]
    row = row_of(run(*texts, fast=True), "double")
    assert row.verdict in WITH_SPEEDUP, reason_of(row)


SWEEP = {"check": {}, "count": {}, "default": {}, "small/a": {}, "small/b": {}, "smaller": {}, "cpu": {}}


@pytest.mark.parametrize(
    ("wanted", "on_cpu", "expected"),
    [
        ("default", False, ["default"]),
        ("default", True, ["cpu"]),
        ("small", False, ["small/a", "small/b"]),
        ("all", False, ["default", "small/a", "small/b", "smaller"]),
        ("all", True, ["small/a", "small/b", "smaller", "cpu"]),
        ("default,small,small/a", True, ["small/a", "small/b", "cpu"]),
        ("check,count,smaller,none", False, ["smaller"]),
    ],
)
def test_the_sizes_that_a_name_selects(wanted, on_cpu, expected, tmp_path):
    assert sizes_of(one_pair(tmp_path, baseline=version(sizes=SWEEP)), wanted, on_cpu) == expected


def test_default_stays_default_on_a_cpu_where_there_is_no_other(tmp_path):
    assert sizes_of(one_pair(tmp_path), "default", on_cpu=True) == ["default"]


EVEN = {"check": {"n": 127}, "default": {"n": 4096}, "small/a": {"n": 512}, "small/b": {"n": 1024}}
WRONG_IF_ODD = "y = 2 * x + w_shift\nif len(x) % 2: y[-1] = 0\nreturn y"


@pytest.fixture
def swept(run):
    """(optimized, baseline) at all sizes: rows of variants, at which sizes those at the check sizes were judged."""

    def of(optimized=None, baseline=None, variants=("optimized",), **options):
        judged = {}

        def listen(pair, size, stage, fraction):
            if stage == "check":
                judged[size] = None

        texts = optimized, baseline or version(sizes=EVEN)
        found = run(*texts, size="all", fast=True, on_progress=listen, **options).pairs
        assert {result.size: result.sizes for result in found} == {size: EVEN[size] for size in list(EVEN)[1:]}
        return [row for result in found for row in result.rows if row.variant in variants], list(judged)

    return of


NOTED = """
from pathlib import Path

import torch

def noted(graph, inputs):
    with Path(__file__).with_name("graphs").open("a") as file:
        file.write("x")
    return graph.forward

def twice(x):
    return 2 * x
"""
COMPILED = "from noted import noted, twice\ndouble = torch.compile(twice, backend=noted, dynamic=False)"


def test_what_torch_compiles_is_compiled_once_a_size(tmp_path):
    """Also where uninitialized memory is filled: for this mode of torch it would compile all again."""
    (tmp_path / "noted.py").write_text(NOTED)
    code = version("return double(x.contiguous()) + w_shift", extra=COMPILED)
    write_pair(tmp_path, "double", {"": code, "again": code.replace("+ w_shift", "+ 1 * w_shift")})
    (pair,) = discover(tmp_path, "double")
    (result,) = run_pairs([pair], check_only=True).pairs
    assert [row.verdict for row in result.rows] == ["verified"] * 2
    assert (tmp_path / "graphs").read_text() == "x" * len(pair.versions[1:]) * len(pair.check_sizes)


def test_what_is_not_timed_is_checked_once_a_sweep(swept):
    rows, judged = swept(check_only=True)
    assert [row.verdict for row in rows] == ["verified"] * 3
    assert judged == ["default"]


@pytest.mark.rest
def test_the_check_sizes_are_judged_once_a_sweep_where_all_arms_pass(swept):
    rows, judged = swept(version(extra="def library(x, w_shift): return 2 * x + w_shift"))
    assert {row.verdict for row in rows} <= set(WITH_SPEEDUP)
    assert [list(row.vs_library) for row in rows] == [["library"]] * 3
    assert judged == ["default"]
    assert swept(version())[1] == ["default"]  # another run relies on nothing


@pytest.mark.parametrize("check_only", [False, True])
def test_a_liar_that_is_wrong_only_at_a_check_size_is_invalid_at_every_size(check_only, swept):
    rows, judged = swept(version(WRONG_IF_ODD), check_only=check_only)
    assert [(row.verdict, reason_of(row)[:26]) for row in rows] == [("invalid", "wrong answer at size check")] * 3
    assert judged == ["default", "small/a", "small/b"]


def test_an_honest_variant_does_not_vouch_for_a_liar_beside_it(swept, tmp_path):
    write_pair(tmp_path, "double", {"liar": version(WRONG_IF_ODD)})
    rows, _ = swept(variants=("optimized", "optimized/liar"))
    assert [row.verdict for row in rows[1::2]] == ["invalid"] * 3
    assert {row.verdict for row in rows[::2]} <= set(WITH_SPEEDUP)


@pytest.mark.parametrize(("wrong_at", "compared"), [(127, True), (4096, False)])
def test_a_library_is_judged_where_it_is_timed(wrong_at, compared, run):
    sizes = {"check": {"n": 128}, "check/other": {"n": 127}, "default": {"n": 4096}}
    library = f"def library(x, w_shift): return (2 if len(x) != {wrong_at} else 3) * x + w_shift"
    row = row_of(run(version(extra=library), version(sizes=sizes), fast=True), "double")
    assert row.verdict in WITH_SPEEDUP
    assert bool(row.vs_library) == compared


TUNED_SIZES = {"check": {"n": 128}, "check/tuned/odd": {"n": 127}, "default": {"n": 4096}, "tuned/odd": {"n": 511}}


@pytest.mark.parametrize(("wrong", "verdicts"), [("", WITH_SPEEDUP), ("tuned", ["invalid"])])
def test_a_lesson_is_left_out_at_the_sizes_of_tuned(wrong, verdicts, run, tmp_path):
    """It would be wrong there; `tuned` has to be right."""
    lesson = WRONG_IF_ODD.replace("% 2", "in (127, 511)")
    write_pair(tmp_path, "double", {"tuned": version(lesson if wrong else HONEST)})
    record = run(version(lesson), version(sizes=TUNED_SIZES), size="default,tuned", fast=True)
    found = {(result.size, row.variant): row for result in record.pairs for row in result.rows}
    assert found["default", "optimized"].verdict in WITH_SPEEDUP
    assert {found[size, "optimized/tuned"].verdict for size in ("default", "tuned/odd")} <= set(verdicts)
    row = found["tuned/odd", "optimized"]
    assert (row.verdict, reason_of(row)) == ("skipped", "a lesson: only `tuned` is made for tuned/odd")


def test_a_size_that_was_not_timed_vouches_for_none_after_it(swept):
    inputs = f"if n == 4096: raise MemoryError\n{VECTOR}"
    rows, judged = swept(version(inputs=inputs), version(inputs=inputs, sizes=EVEN))
    first, *others = [row.verdict for row in rows]
    assert (first, judged) == ("skipped", ["default", "small/a"])
    assert set(others) <= set(WITH_SPEEDUP)


def test_the_timed_size_is_judged_at_every_size(swept):
    """Both versions are wrong at one of them: only the oracle can tell."""
    wrong = partial(version, WRONG_IF_ODD.replace("% 2", "== 512"), extra=ORACLE)
    (first, at_512, last), judged = swept(wrong(), wrong(sizes=EVEN))
    assert (at_512.verdict, judged) == ("invalid", ["default"])
    assert reason_of(at_512).startswith("the baseline: wrong answer at the timed size")
    assert {first.verdict, last.verdict} <= set(WITH_SPEEDUP)


POSITIVE = "a positive number is needed (int or float)"
NO_AMOUNTS = {"0": 0, "-1": -1, "nan": math.nan, "inf": math.inf, "'8'": "8", "True": True,
              "tensor([[1.], [1.], [1.]])": torch.ones(3, 1)}  # fmt: skip


def test_a_cost_of_no_resource_or_of_no_amount_is_invalid(run):
    assert cost_problem({"dram_byte": 8}, False).startswith("names dram_byte: it must be of bf16_flops, d2h_bytes, ")
    for shown, amount in NO_AMOUNTS.items():
        assert cost_problem({"fp32_flops": 8, "dram_bytes": amount}, False) == f"gives dram_bytes = {shown}: {POSITIVE}"
    at_the_timed_size = "def cost(x, w_shift): return {'dram_bytes': 0 if len(x) > 127 else 8}"
    record = run(*[version(extra=at_the_timed_size)] * 2)
    row = row_of(record, "double")
    said = f"the baseline: baseline_double.py: cost gives dram_bytes = 0: {POSITIVE}"
    assert (row.verdict, reason_of(row)) == ("invalid", said)
    assert runner.has_failed(record)


def test_a_variant_whose_cost_is_no_amount_is_invalid_by_itself(run):
    cost = "def cost(x, w_shift): return {'dram_bytes': %s}"
    row = row_of(run(version(extra=cost % "0.0"), version(extra=cost % "8"), check_only=True), "double")
    assert (row.verdict, reason_of(row)) == ("invalid", f"optimized_double.py: cost gives dram_bytes = 0.0: {POSITIVE}")


def test_work_on_empty_inputs_may_cost_nothing_where_it_is_only_checked(run):
    sizes = {"check": {"n": 127}, "check/none": {"n": 0}, "default": {"n": 4096}, "none": {"n": 0}}
    text = version(sizes=sizes, extra="def cost(x, w_shift): return {'dram_bytes': 2 * x.nbytes}")
    checked, timed = [pair.rows[0] for pair in run(text, text, size="default,none", fast=True).pairs]
    assert checked.verdict in WITH_SPEEDUP, checked
    said = f"the baseline: baseline_double.py: cost gives dram_bytes = 0: {POSITIVE}"
    assert (timed.verdict, reason_of(timed)) == ("invalid", said)
