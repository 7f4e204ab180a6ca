"""What Triton kernels ask of the memory, against what is counted by hand; and that counting leaves nothing behind."""

import math

import pytest
import torch

pytest.importorskip("triton")  # not on macOS
import programs
from triton import knobs, language
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from common.traffic import count, counting, triton_hooks
from common.traffic.meter import Meter, working_programs


def vector(n=1024, dtype=torch.float32):
    return torch.arange(n, dtype=dtype)


@pytest.mark.parametrize(
    ("stride", "sectors"),
    [(1, 128), (2, 256), (3, 384), (8, 1024), (100, 1024)],  # of 32 bytes; each lane has one of its own from 8 on
)
def test_a_stride_spreads_a_load_over_sectors(stride, sectors):
    found = count(programs.strided, vector(1024 * stride), 1024, stride)
    assert found.total.read_sectors == sectors
    assert found.total.written_sectors == 1024 * 4 // 32
    assert (found.launches, found.programs) == (1, 8)
    assert (found.total.read_bytes, found.total.written_bytes) == (4096, 4096)  # as many as lanes ask for
    assert found.distinct_bytes == 32 * (sectors + 128)


def test_programs_share_the_work_from_a_quarter_of_the_mean_on():
    """Program i of 60 moves i + 2 blocks, 31.5 on average: 8 blocks and more count, not those of the first six."""
    assert count(programs.growing, vector(60 * 32), 60).total.working == 54
    assert [working_programs(moved) for moved in ([97, 1, 1, 1], [0, 0], [], [5, 0, 5])] == [1, 0, 0, 2]
    assert count(programs.twice, vector()).total.working == 4


def test_a_shifted_load_touches_a_sector_more_in_each_program():
    found = count(programs.strided, vector(1100), 1024, shift=1)
    assert found.total.read_sectors == 8 * (128 * 4 // 32 + 1)
    assert found.distinct_bytes == 32 * (129 + 128)  # neighbours share theirs


def test_masked_lanes_ask_for_nothing():
    found = count(programs.strided, vector(), 100).total
    assert (found.lanes, found.masked) == (2 * 128, 2 * 28)
    assert (found.read_bytes, found.read_sectors) == (400, 13)  # 12.5 sectors


def test_each_launch_has_to_move_its_data_itself():
    x = vector()
    with counting() as meter:
        programs.twice(x)
        programs.twice(x)
    assert (meter.traffic.launches, meter.traffic.distinct_bytes) == (2, 4 * 4096)
    assert [kernel.name for kernel in meter.traffic.kernels] == ["twice_kernel"]


def test_atomic_operations_are_counted_by_address():
    found = count(programs.add_up, vector(), 0).total  # all lanes of 16 programs at one address
    assert (found.atomics, found.max_atomics_per_address) == (1024, 16 * 64)
    assert (found.read_sectors, found.written_sectors) == (128 + 16, 16 + 8)  # 8: torch.zeros
    found = count(programs.claim, 5).total  # a lock
    assert (found.atomics, found.max_atomics_per_address) == (5, 5)


@pytest.mark.parametrize("function", [programs.tiles, programs.device_tiles])
@pytest.mark.parametrize("shape", [(64, 64), (40, 48)])  # whole tiles; tiles that reach over two edges
def test_descriptors_ask_for_what_lies_inside(function, shape):
    x = torch.randn(shape)
    with counting() as meter:
        assert torch.equal(function(x), x)
    found = meter.traffic
    assert found.requested_bytes == 2 * x.nbytes
    assert found.sectors == found.total.through_tma == 2 * x.nbytes // 32
    assert found.programs == -(-shape[0] // 16) * -(-shape[1] // 32)


@pytest.mark.parametrize(
    ("dtype", "precision", "flops"),
    [
        (torch.float16, "ieee", {"fp16_flops": 2 * 32 * 32 * 16}),
        (torch.float32, "ieee", {"fp32_flops": 2 * 32 * 32 * 16}),
        (torch.float32, "tf32", {"tf32_flops": 2 * 32 * 32 * 16}),
        (torch.float32, "tf32x3", {"tf32_flops": 3 * 2 * 32 * 32 * 16}),
    ],
)
def test_a_product_counts_by_the_precision_of_its_operands(dtype, precision, flops):
    a, b = torch.randn(32, 16).to(dtype), torch.randn(16, 32).to(dtype)
    with counting() as meter:
        c = programs.product(a, b, precision)
    assert meter.traffic.flops == flops
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-4, atol=1e-4)


def test_a_tuned_kernel_takes_its_first_configuration():
    assert count(programs.tuned, vector(256)).programs == 4


def test_an_answer_is_what_it_would_be_and_inputs_stay():
    x = torch.randn(1000)
    before = x.clone()
    with counting():
        y = programs.strided(x, 1000)
    assert torch.equal(y, 2 * before)
    assert torch.equal(x, before)


@pytest.mark.parametrize(
    ("dtype", "value", "held"),
    [
        (torch.float32, math.nan, math.nan), (torch.float16, math.inf, math.inf), (torch.bfloat16, math.nan, math.nan),
        (torch.bfloat16, -math.inf, -math.inf), (torch.int32, math.nan, 2**31 - 1), (torch.uint8, math.nan, 255),
        (torch.float32, None, 0), (torch.int64, None, 0),
    ],
)  # fmt: skip
def test_a_masked_lane_without_other_holds_what_is_wished(dtype, value, held):
    x, out = torch.ones(16, dtype=dtype), torch.zeros(16, dtype=dtype)
    with triton_hooks.interpreter_hooks(Meter(), undefined=lambda: value):
        programs.masked_copy(x, out, 10)
    assert torch.equal(out[:10], x[:10])
    assert torch.allclose(out[10:].double(), torch.tensor(held).double(), equal_nan=True)


@pytest.mark.parametrize("other", [0, 1])
def test_a_masked_lane_with_other_holds_it(other):
    x, out = torch.ones(16), torch.zeros(16)
    asked = []
    with triton_hooks.interpreter_hooks(Meter(), undefined=lambda: asked.append(1) or math.nan):
        programs.masked_copy(x, out, 10, other)
        programs.masked_copy(x, out, 16)
    assert (out[:10] == 1).all() and not asked


def test_a_kernel_without_a_grid_is_no_launch():
    with counting(), pytest.raises(triton_hooks.UnseenLaunch, match=r"twice_kernel is called without a grid.*\[grid\]"):
        programs.twice_kernel(vector(), vector(), 1024)


def hooked():
    """All that the interpreter replaces: its own classes, and the language, for functions that kernels call, too."""
    owners = (
        interpreter.InterpreterBuilder, interpreter.InterpretedFunction, JITFunction, Autotuner,
        language, language.core, language.math, language.tensor, language.dtype, language.core.tensor_descriptor_base,
    )  # fmt: skip
    return [dict(vars(each)) for each in owners], knobs.runtime.interpret


def test_no_hook_stays_behind(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)  # Triton's knobs set this variable when they are set
    before = hooked()
    count(programs.twice, vector())
    assert hooked() == before and before[1] is False


def test_no_hook_stays_behind_where_a_kernel_cannot_be_interpreted():
    before = hooked()
    with pytest.raises(Exception, match="inline_asm"):
        count(programs.failing_kernel[(1,)], vector())
    assert hooked() == before


def test_what_is_launched_outside_is_not_counted():
    with counting() as meter:
        pass
    with counting():
        programs.twice(vector())
    assert meter.traffic.kernels == ()
    assert (meter.traffic.launches, meter.traffic.sectors, meter.traffic.distinct_bytes) == (0, 0, 0)


@pytest.mark.gpu
def test_a_gpus_tensors_are_counted_and_answered_there():
    x = vector().cuda()
    with counting() as meter:
        y = programs.twice(x)
    assert torch.equal(y, x - x.reshape(-1, 256).amax(1, keepdim=True).expand(-1, 256).reshape(-1))
    assert (y.device, meter.traffic.sectors) == (x.device, 384)
