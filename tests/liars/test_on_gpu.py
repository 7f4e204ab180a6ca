"""The liars that need a GPU, and what only a GPU's clock can show."""

import statistics

import pytest
from samples import notes_of, version, write_pair

from common.engine import runner
from common.pairs.pair import discover
from liars import guards
from liars.case import assert_believed, assert_out, rooms, rows_of, shows, write_rooms
from liars.gpu import CUPY, FAMILIES, LIMITS, SIZES
from liars.state import OUT

LIARS = {name: case for cases in FAMILIES.values() for name, case in cases.items()}
ROOMS, WHERE = rooms(FAMILIES)


def test_the_pairs_for_a_gpu_keep_the_contract(tmp_path):
    assert len(write_rooms(ROOMS, tmp_path)) == len(ROOMS)


@pytest.fixture(scope="module")
def measure():
    """pairs -> record, on a GPU whose memory is told to be too fast to contradict any honest time."""
    surveyed = {device: runner.survey_apart(device, with_limits=False)[0] for device in ("cuda:0", "cpu")}
    with pytest.MonkeyPatch.context() as patch:  # a GPU's check asks the interpreter, too
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: (surveyed[device], LIMITS))
        yield lambda pairs: runner.run_pairs(pairs, device="cuda:0", fast=True)


@pytest.fixture(scope="module")
def rows(measure, tmp_path_factory):
    return rows_of(measure(write_rooms(ROOMS, tmp_path_factory.mktemp("liars"))))


@pytest.mark.gpu
@pytest.mark.parametrize("name", LIARS)
def test_a_liar_is_out_for_its_own_reason(name, rows):
    assert_out(LIARS[name], rows[WHERE[name, "liar"]])


@pytest.mark.gpu
@pytest.mark.parametrize("name", LIARS)
def test_its_honest_twin_is_believed(name, rows):
    assert_believed(rows[WHERE[name, "twin"]])


@pytest.mark.gpu
@pytest.mark.parametrize("name", guards.ON_A_GPU)
def test_without_it_somebody_gets_through(name, measure, tmp_path, monkeypatch):
    guards.assert_needed(name, guards.ON_A_GPU[name], LIARS, tmp_path, monkeypatch, device="cuda:0")


INTO_OUT = {
    "torch": (OUT, "return torch.mul(x, 2, out=out)"),
    "cupy": (
        CUPY.replace("}", ', "out": cupy.empty(n, dtype=cupy.float32)}'),
        "import cupy\nreturn cupy.multiply(x, 2, out=out)",
    ),
}


@pytest.mark.gpu
@shows(14)
@pytest.mark.parametrize("library", INTO_OUT)
def test_an_allocation_that_the_other_arm_does_without_is_said(library, measure, tmp_path):
    inputs, run = INTO_OUT[library]
    into, anew = (version(each, "x, out", inputs, sizes=SIZES) for each in (run, "return 2 * x"))
    write_pair(tmp_path, "double", {"twin": into, "liar": anew}, into)
    (pair,) = measure(discover(tmp_path)).pairs
    said = [[note for note in notes_of(row) if "allocates" in note] for row in pair.rows]
    assert said == [["allocates 16.0 MiB a call, the baseline almost nothing"], []]


@pytest.mark.gpu
@shows(3)
def test_the_clock_reads_nothing_of_what_a_version_has_replaced(monkeypatch):
    import torch

    from common.machine.clock import DeviceClock

    clock = DeviceClock("cuda:0")
    for name in ("record", "query", "synchronize", "elapsed_time"):
        monkeypatch.setattr(torch.cuda.Event, name, None)
    for home, name in ((torch.cuda, "Event"), (torch.cuda, "synchronize"), (torch, "sum")):
        monkeypatch.setattr(home, name, None)
    assert clock.sample([lambda: torch.cuda._sleep(1_000_000)]).seconds > 1e-4


@pytest.mark.gpu
@pytest.mark.alone
@shows(13)
def test_a_call_finds_nothing_of_the_one_before_in_l2():
    """A sum of rows after itself, and on the harness's clock: with its own flush, with a pause that touches no memory
    instead, which keeps the device as busy, and with both.
    """
    import torch

    from common.machine.clock import DeviceClock

    clock = DeviceClock("cuda:0")
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    rows = torch.rand(l2 // 3 // (4 * 4096), 4096, device="cuda:0")  # fits in each half of an L2 that consists of two
    sums = torch.empty(len(rows), device="cuda:0")
    flush, (start, stop) = clock._flush, (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def call():
        return torch.sum(rows, dim=1, out=sums)

    def pause(times=0):
        torch.cuda._sleep(1_000_000)  # half a millisecond in which the rest is queued

    def flush_and_pause(times):
        flush(times)
        pause()

    def after_itself():
        pause()
        call()
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) * 1e-3

    def sampled(before):
        clock._flush = before
        return statistics.median(clock.sample([call], 50e-6).seconds for _ in range(50))

    warm, cold = statistics.median(after_itself() for _ in range(50)), sampled(flush)
    assert sampled(pause) == pytest.approx(warm, rel=0.2)
    assert sampled(flush_and_pause) > 1.2 * warm
    assert cold == pytest.approx(sampled(flush_and_pause), rel=0.2)  # and the flush alone keeps it busy


@pytest.mark.gpu
@pytest.mark.alone
def test_a_call_that_the_host_takes_long_to_issue_is_timed_without_the_waiting_or_said_to_wait():
    import torch

    from common.machine.clock import DeviceClock, host_seconds, now

    clock, x = DeviceClock("cuda:0"), torch.zeros(1000, device="cuda:0")

    def call():
        x.add_(1)
        end = now() + 2e-3
        while now() < end:
            pass
        return x.add_(1)

    hidden = [clock.sample([call], host_seconds(call, "cuda:0")) for _ in range(20)]
    open_to_see = [clock.sample([call], 0.0) for _ in range(20)]
    assert statistics.median(sample.seconds for sample in hidden) < 100e-6
    assert statistics.median(sample.seconds for sample in open_to_see) > 1e-3
    assert sum(sample.device_waited for sample in hidden) <= 2  # a host that others share
    assert all(sample.device_waited for sample in open_to_see)
