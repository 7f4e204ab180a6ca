"""Races between programs and between lanes are seen in the interpreter, whatever the order of programs; twins pass."""

import re
from pathlib import Path

import pytest
from samples import one_pair, reason_of, version, write_pair

from common.checks.kernel_memory import Waits, cause_of
from common.engine.runner import run_pairs

pytest.importorskip("triton")
ORDERS = "", "reversed", "shuffled"
LINES = (Path(__file__).parent / "racing.py").read_text().splitlines()


def line_of(text):
    """The number of the line of racing.py with this text, in brackets."""
    (number,) = (number for number, line in enumerate(LINES, 1) if text in line)
    return rf"\(line {number}\)"


SUM, PART, TOTAL = map(line_of, ("tl.load(out_ptr) + part", "tl.store(parts_ptr", "tl.sum(tl.load(parts_ptr"))
ADDS, AGAIN = map(line_of, ("total = tl.atomic_add", "tl.store(out_ptr, total)"))
STORE, LOAD, WAIT = map(line_of, ("tl.store(y_ptr + lanes", "tl.store(x_ptr + lanes", "while tl.atomic_add"))


def error_of(interpreter, name, order=""):
    from racing import error_of

    return interpreter.submit(error_of, name, order).result()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a sum", rf"a race for out\[0\]: program \d stores to it {SUM}, program \d loads it {SUM}"),
        ("a sum, stored again", rf"a race for out\[0\]: program \d stores to it {AGAIN}, program \d adds to it {ADDS}"),
        ("the last arriver, relaxed", rf"a race for parts\[\d\]: .*{PART}.*{TOTAL}"),
        ("no last arriver", r"a race for parts\[\d\]"),
        ("no lock", r"a race for out\[0\]"),
        ("lanes", rf"program 0: lane (\d+) stores to y\[\1\] {STORE} and lane \d+ loads it {LOAD}, with no"),
        ("a halo in place", r"a race in program \d: lane \d+ loads x|a race for x"),
        ("a grid", r"a grid of 1 x 65536 x 1: along axes 1 and 2 a GPU has 65,535"),
    ],
)
def test_a_race_is_seen(interpreter, name, says, order):
    assert re.search(says, error_of(interpreter, name, order)), error_of(interpreter, name, order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "name",
    [
        "a sum, atomic",
        "a sum and one flag",
        "the last arriver",
        "a lock",
        "lanes and a barrier",
        "a halo",
        "one value twice",
    ],
)
def test_what_is_ordered_passes(interpreter, name, order):
    assert error_of(interpreter, name, order) == ""


def test_a_program_that_waits_for_a_later_one_is_told(interpreter):
    line = WAIT.strip("\\()")
    assert error_of(interpreter, "a wait").startswith(f"Waits: {line} waits for another program")
    assert error_of(interpreter, "a wait", "reversed") == ""
    assert not cause_of(ValueError(), Waits)


def test_a_masked_lane_holds_any_value(interpreter):
    from racing import masked_maximum

    values = [interpreter.submit(masked_maximum, value).result() for value in (None, float("inf"))]
    assert values == [0.0, float("inf")]


def test_programs_may_add_after_a_launch_of_fewer_whose_races_were_looked_for(interpreter):
    from racing import total_after_one_program

    got, right = interpreter.submit(total_after_one_program).result()
    assert got == right


@pytest.mark.parametrize(("precision", "low", "high"), [("ieee", 0, 1e-6), ("tf32x3", 0, 1e-6), (None, 1e-4, 1e-2)])
def test_a_product_of_float32_is_rounded_as_on_a_gpu(interpreter, precision, low, high):
    from racing import product_error

    assert low <= interpreter.submit(product_error, precision).result() < high


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * tl.cast(BLOCK, tl.int64) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, 2 * x, mask=offsets < n)
"""
RUN = """
y = x.contiguous().clone()
double_kernel[(triton.cdiv(len(x), 32),)](y, y, len(x), BLOCK=32)
return y + w_shift
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("mask=offsets < n, other", "mask=offsets < n, other", ""),
        ("x_ptr + offsets, mask=offsets < n", "x_ptr + (offsets + 1) % n, mask=offsets < n", "a race "),
    ],
)
def test_a_pair_that_races_is_invalid(old, new, says, tmp_path):
    pair = one_pair(tmp_path, version(RUN, extra=KERNEL.replace(old, new)))
    (row,) = run_pairs([pair], device="cpu", check_only=True).pairs[0].rows
    assert row.verdict == ("invalid" if says else "verified") and reason_of(row).startswith(says), row


def test_race_names_what_it_has_found(tmp_path, capsys):
    import benchmark

    racing = KERNEL.replace("x_ptr + offsets, mask=offsets < n", "x_ptr + (offsets + 1) % n, mask=offsets < n")
    write_pair(tmp_path, "double", {"": version(RUN, extra=KERNEL), "racing": version(RUN, extra=racing)})
    status = benchmark.main(["--race", "dou*", "--path", str(tmp_path)])
    right, wrong = capsys.readouterr().out.splitlines()[1:]
    assert status == 1 and right == "  optimized: no race, whatever the order of programs"
    assert wrong.startswith("  racing: a race ") and wrong.count("line ") == 2
