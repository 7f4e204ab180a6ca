"""Programs that are sampled stand for all: exactly where all are alike, within the error that is stated elsewhere."""

import pytest
import torch

pytest.importorskip("triton")  # not on macOS
import programs

from common.traffic import count
from common.traffic.grid_sampling import PROGRAMS, sampling

GROWING = 60  # programs, of which the first asks for one block and the last for 60


def sampled(function, *arguments, seed=0):
    with sampling(seed) as meter:
        function(*arguments)
    return meter.traffic


def both(function, x, *arguments):
    return count(function, x, *arguments), sampled(function, torch.empty_like(x, device="meta"), *arguments)


@pytest.mark.parametrize(
    ("function", "x", "arguments"),
    [
        (programs.strided, torch.ones(8 * 128 * 64), (128 * 64, 8)),  # 64 programs
        (programs.strided, torch.ones(256), (256,)),  # fewer than are sampled
        (programs.twice, torch.ones(1 << 14), ()),
        (programs.tiles, torch.ones(320, 320), ()),
        (programs.device_tiles, torch.ones(320, 320), ()),
        (programs.tuned, torch.ones(1 << 13), ()),
        (torch.softmax, torch.ones(64, 64), (1,)),
    ],
)
def test_programs_that_are_alike_are_counted_exactly_by_a_few(function, x, arguments):
    exact, few = both(function, x, *arguments)
    assert few == exact


def test_flops_and_a_queue_are_scaled_too():
    exact, few = both(programs.add_up, torch.ones(64 * 128), 0)
    assert (few.total.atomics, few.total.max_atomics_per_address) == (64 * 128, 64 * 128)
    assert (exact.total.atomics, exact.total.max_atomics_per_address) == (64 * 128, 64 * 128)
    a, b = (torch.empty(32, 16, device="meta"), torch.empty(16, 32, device="meta"))
    assert sampled(programs.product, a, b).flops == {"fp32_flops": 2 * 32 * 32 * 16}


def test_programs_that_differ_come_with_an_error_that_holds():
    exact = count(programs.growing, torch.ones(GROWING * 32), GROWING)
    x = torch.empty(GROWING * 32, device="meta")
    found = [sampled(programs.growing, x, GROWING, seed=seed) for seed in range(12)]
    off = [abs(each.sectors / exact.sectors - 1) / each.error for each in found]  # in standard errors
    assert max(off) < 4
    assert sum(each < 2 for each in off) > 8
    assert all(0.003 < each.error < 0.05 for each in found)  # of any 24 programs it would be 0.1
    assert len({each.sectors for each in found}) > 6
    assert sampled(programs.growing, x, GROWING, seed=3) == found[3]


def test_no_tensor_has_more_than_it_has():
    """Each program reads the first block again: far more is asked for than is distinct."""
    found = sampled(programs.growing, torch.empty(GROWING * 32, device="meta"), GROWING)
    written = 32 * GROWING * 4
    assert written < found.distinct_bytes <= 2 * written
    assert found.sectors * 32 > 8 * written


def test_a_queue_of_each_programs_own_is_not_scaled():
    x = torch.empty(64 * 128, device="meta")
    assert sampled(programs.add_up, x, 1).total.max_atomics_per_address == 128  # all programs meet at each address
    assert sampled(programs.claim_own, 100).total.max_atomics_per_address == 1
    totals = [sampled(programs.claim_own, 256, 16, seed=seed).total for seed in range(20)]  # 16 to each address
    assert sum(total.max_atomics_per_address for total in totals) / len(totals) == pytest.approx(16, rel=0.2)


def test_nothing_is_computed_and_no_memory_is_touched():
    n = 1 << 30
    with sampling() as meter:
        y = programs.strided(torch.empty(n, device="meta"), n, 1, 0, 1 << 10)
    assert (y.device.type, y.shape) == ("meta", (n,))
    assert meter.traffic.distinct_bytes == 8 * n


@pytest.mark.parametrize("shift", [-(1 << 20), 1 << 20])
def test_an_address_outside_of_all_tensors_is_an_error(shift):
    with pytest.raises(IndexError, match="outside of all tensors"), sampling():
        programs.strided(torch.empty(1 << 12, device="meta"), 1 << 12, 1, shift)


def test_like_launches_are_looked_at_once(monkeypatch):
    looked = []
    own = programs.twice_kernel.fn
    x = torch.empty(1 << 14, device="meta")
    with sampling() as meter:
        monkeypatch.setattr(
            meter, "program_counts", lambda *places, counts=meter.program_counts: looked.append(1) or counts(*places)
        )
        for _ in range(5):
            programs.twice(x)
        programs.twice(torch.empty(1 << 15, device="meta"))
    assert (meter.traffic.launches, meter.traffic.programs) == (6, 5 * 64 + 128)
    assert len(looked) == 2 * PROGRAMS
    assert programs.twice_kernel.fn is own
