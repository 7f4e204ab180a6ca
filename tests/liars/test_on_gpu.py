"""The liars that need a GPU, and what only a GPU's clock can show."""

import re
import statistics

import pytest
from samples import half, write_pair

from common import runner
from common.pair import discover
from common.result import BELIEVED
from liars.case import rooms, shows
from liars.gpu import FAMILIES, LIMITS, SIZES

LIARS = {name: case for cases in FAMILIES.values() for name, case in cases.items()}
ROOMS, WHERE = rooms(FAMILIES)


def write(folder):
    for pair, (variants, baseline) in ROOMS.items():
        write_pair(folder, pair, variants, baseline)
    return discover(folder)


def test_the_pairs_for_a_gpu_keep_the_contract(tmp_path):
    assert len(write(tmp_path)) == len(ROOMS)


@pytest.fixture(scope="module")
def measure():
    """pairs -> record, on a GPU whose memory is told to be too fast to contradict any honest time."""
    surveyed = runner.survey_apart("cuda:0", with_limits=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: (surveyed[0], LIMITS))
        yield lambda pairs: runner.run_pairs(pairs, device="cuda:0", fast=True)


@pytest.fixture(scope="module")
def rows(measure, tmp_path_factory):
    """(pair, variant) -> row."""
    record = measure(write(tmp_path_factory.mktemp("liars")))
    return {(pair.name, row.variant): row for pair in record.pairs for row in pair.rows}


@pytest.mark.gpu
@pytest.mark.parametrize("name", LIARS)
def test_a_liar_is_out_for_its_own_reason(name, rows):
    row, case = rows[WHERE[name, "liar"]], LIARS[name]
    assert row.verdict == case.verdict, row
    assert re.search(case.reason, row.reason), row.reason
    assert (row.ratio, row.interval, row.vs_library) == (None, None, {})


@pytest.mark.gpu
@pytest.mark.parametrize("name", LIARS)
def test_its_honest_twin_is_believed(name, rows):
    row = rows[WHERE[name, "twin"]]
    assert row.verdict in BELIEVED, row.reason
    assert row.ratio > 0


@pytest.mark.gpu
@shows(14)
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_an_allocation_that_the_other_arm_does_without_is_said(library, measure, tmp_path):
    inputs = 'return {"x": torch.randn(n, device=device), "out": torch.empty(n, device=device)}'
    into, anew = "return torch.mul(x, 2, out=out)", "return 2 * x"
    if library == "cupy":
        inputs = 'import cupy\nx = cupy.random.standard_normal(n, dtype=cupy.float32)\nreturn {"x": x, "out": x.copy()}'
        into = "import cupy\nreturn cupy.multiply(x, 2, out=out)"
    texts = [half(run, "x, out", inputs, sizes=SIZES) for run in (into, into, anew)]
    write_pair(tmp_path, "double", {"twin": texts[1], "liar": texts[2]}, texts[0])
    (pair,) = measure(discover(tmp_path)).pairs
    said = {row.variant: [note for note in row.notes if "allocates" in note] for row in pair.rows}
    assert said["optimized/twin"] == []
    assert said["optimized/liar"] == ["allocates 16.0 MiB a call, the baseline next to nothing"]


@pytest.mark.gpu
@shows(13)
def test_a_call_finds_nothing_of_the_one_before_in_l2():
    """The same sum of what fits in L2, between two events: after itself, and on the harness's clock."""
    import torch

    from common.clock import DeviceClock

    clock = DeviceClock("cuda:0")
    x = torch.randn(torch.cuda.get_device_properties(0).L2_cache_size // 16, device="cuda:0")  # a quarter of it
    total = torch.zeros((), device="cuda:0")

    def call():
        return torch.sum(x, dim=0, out=total)

    def after_itself():
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(1_000_000)  # half a millisecond in which the rest is queued
        call()
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) * 1e-3

    warm = statistics.median(after_itself() for _ in range(50))
    cold = statistics.median(clock.sample([call], 50e-6).seconds for _ in range(50))
    assert cold > warm
