"""Counts and machine code that exercises give: of the program in the solution, with what follows from them."""

import math

import pytest

pytest.importorskip("triton")
import triton

from common.learn.device_work import BACKWARD, FORWARD, OPTIMIZER, works_of
from common.learn.exercise import find
from common.xray import capture, sass
from common.xray.occupancy import MACHINES, REGISTERS_PER_SM, WARP

H100 = MACHINES["sm_90"]
COMPILER = "3.7.1"  # other versions of Triton make other machine code
RATE, LATENCY_S = 3350e9, 600e-9
pytestmark = pytest.mark.skipif(not triton.__version__.startswith(COMPILER), reason=f"tables are of Triton {COMPILER}")


def anatomy(name, **arguments):
    """The only kernel of a solution's program, and how many programs it is launched with."""
    (launch,) = capture.launches(find(name).solution, arguments, H100)
    return sass.anatomy(launch, H100), math.prod(launch.grid)


def table(name):
    """What an exercise shows: row -> text."""
    lines = [line.strip("| ").split(" | ") for line in find(name).spec.splitlines() if line.startswith("|")]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def right(name, answer):
    return find(name).answers[answer]["is"]


def numbers(text):
    return [int(word.replace(",", "")) for word in text.replace(":", "").split() if word.replace(",", "").isdigit()]


def test_tiles():
    code, programs = anatomy("ch8/tiles")
    rows = table("ch8/tiles")
    assert math.prod(int(part) for part in rows["programs"].split(",")[0].split(" x ")) == programs
    assert numbers(rows["registers of a thread"]) == [code.registers]
    assert numbers(rows["threads of a program"])[0] == code.threads
    assert numbers(rows["shared memory of a program"]) == [code.shared_bytes]
    assert numbers(rows["programs that an SM holds"]) == [code.occupancy.blocks]
    assert code.spills == 0 and code.tensor and code.widest("copies to shared memory") == 128
    at_a_time = H100.sms * code.occupancy.blocks
    rounds = -(-programs // at_a_time)
    assert rounds == right("ch8/tiles", "rounds")
    assert rounds / (programs / at_a_time) == pytest.approx(right("ch8/tiles", "gain"), rel=0.005)


def test_totals():
    code, programs = anatomy("ch8/totals")
    rows = table("ch8/totals")
    assert numbers(rows["programs"].replace(", each", " each"))[0] == programs
    assert numbers(rows["registers of a thread"]) == [code.registers]
    assert numbers(rows["programs that an SM holds"])[:2] == [code.occupancy.blocks, code.occupancy.warps]
    assert code.occupancy.warps == H100.warps and code.spills == 0
    assert code.counts["global loads", 32] == code.total("global loads") == code.total("global stores") == 1
    assert numbers(rows["barriers"]) == [code.total("barriers")]
    on_the_way = code.occupancy.warps * WARP * 4
    assert on_the_way == right("ch8/totals", "bytes_of_sm")
    assert RATE * LATENCY_S / H100.sms / on_the_way == pytest.approx(right("ch8/totals", "gain"), rel=0.005)


def test_wide_rows():
    code, programs = anatomy("ch8/wide_rows")
    rows = table("ch8/wide_rows")
    assert numbers(rows["programs"].replace(", each", " each"))[0] == programs
    assert numbers(rows["threads of a program"])[0] == code.threads
    assert numbers(rows["registers of a thread"]) == [code.registers]
    assert numbers(rows["programs that an SM holds"])[:2] == [code.occupancy.blocks, code.occupancy.warps]
    assert numbers(rows["loads of x, z and dy"])[0] == code.counts["global loads", 128] == code.total("global loads")
    assert numbers(rows["stores of the answer"])[0] == code.total("global stores")
    spills = code.total("spill stores"), code.total("spill loads")
    assert (*numbers(rows["stores to local memory"]), *numbers(rows["loads from local memory"])) == spills
    needed = code.total("global loads") + code.total("global stores")
    assert (needed + sum(spills)) / needed == pytest.approx(right("ch8/wide_rows", "gain"), rel=0.005)
    assert 3 * programs // code.threads == right(
        "ch8/wide_rows", "values"
    )  # a row has as many values as there are rows


def test_wide_rows_spill_with_4_warps_and_not_with_8(tmp_path):
    warps = right("ch8/wide_rows", "warps")
    text = find("ch8/wide_rows").solution.read_text(encoding="utf-8")
    path = tmp_path / "program.py"
    path.write_text(text.replace("num_warps=4", f"num_warps={warps}"), encoding="utf-8")
    (launch,) = capture.launches(path, {}, H100)
    code = sass.anatomy(launch, H100)
    assert code.threads == warps * WARP and code.spills == 0
    assert code.registers * code.threads <= REGISTERS_PER_SM


def test_clipping():
    (work,) = works_of([find("ch8/clipping").solution], {}, True, lambda *_: None)
    rows = {text: int(count) for text, count in table("ch8/clipping").items() if count.isdigit()}
    forward, backward, products, between, optimizer, copies, waits = rows.values()
    found, lengths = work.operations, ("linalg_vector_norm", "gt")
    assert between == sum(found[FORWARD][name] for name in lengths)
    assert [forward + between, backward, optimizer] == [found[p].total() for p in (FORWARD, BACKWARD, OPTIMIZER)]
    assert products == found[FORWARD]["addmm"] + found[BACKWARD]["mm"]
    assert [copies, waits] == [work.copies.total(), work.waits.total()]
    work_us, idle_us = 10 * (forward + backward + between + optimizer), waits * 38
    assert idle_us == right("ch8/clipping", "idle_us")
    assert (work_us + idle_us) / work_us == pytest.approx(right("ch8/clipping", "gain"), rel=0.005)
