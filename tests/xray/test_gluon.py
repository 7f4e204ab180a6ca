"""A version written in Gluon: compiled and X-rayed anywhere, skipped and not counted where it cannot run."""

import textwrap

import pytest
from samples import one_pair, reason_of, version

import benchmark
from common.pairs.pair import NOT_INTERPRETED
from common.record.record_file import load_record
from common.traffic.versions import count_pair
from common.xray.occupancy import MACHINES
from common.xray.picture import xray

pytest.importorskip("triton")

KERNEL = """
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
    REQUIRES = {"capability": (9, 0), "exact": True}
    def reference(x, w_shift): return 2 * x + w_shift
    @gluon.jit
    def double_kernel(x_desc, y_ptr, shift_ptr, n, BLOCK: gl.constexpr):
        smem = gl.allocate_shared_memory(x_desc.dtype, x_desc.block_type.shape, x_desc.layout)
        full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(full, count=1)
        first = gl.program_id(0) * BLOCK
        mbarrier.expect(full, x_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(x_desc, [0, first], full, smem)
        mbarrier.wait(full, 0)
        layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
        x = smem.load(layout)
        offsets = first + gl.arange(0, BLOCK, gl.SliceLayout(0, layout))[None, :]
        gl.store(y_ptr + offsets, 2 * x + gl.load(shift_ptr), mask=offsets < n)
"""
RUN = """
    y, block = torch.empty_like(x), 128
    layout = gl.NVMMASharedLayout.get_default_for([1, block], gl.float32)
    x_desc = TensorDescriptor(x, [1, len(x)], [-(-len(x) // 4) * 4, 1], [1, block], layout)
    double_kernel[(-(-len(x) // block),)](x_desc, y, w_shift, len(x), block)
    return y
"""


@pytest.fixture
def pair(tmp_path):
    return one_pair(tmp_path, version(RUN, extra=textwrap.dedent(KERNEL)))


@pytest.mark.usefixtures("in_this_process")
def test_its_kernel_is_recognized_and_compiled_for_its_own_capability_only(pair):
    (variant,) = pair.variants
    assert variant.has_kernel and variant.is_gluon and variant.needs_cuda
    assert not (pair.baseline.has_kernel or pair.baseline.is_gluon or pair.baseline.needs_cuda)
    found = {picture.architecture: picture for picture in xray(pair, list(MACHINES)) if picture.label == "optimized"}
    (kernel,) = found.pop("sm_90").kernels
    assert (kernel.threads, kernel.spills, kernel.total("TMA loads")) == (128, 0, 1)
    assert {picture.reason for picture in found.values()} == {"needs compute capability 9.0 and no other"}
    assert not any(picture.kernels or picture.failed for picture in found.values())


def test_without_a_gpu_it_is_skipped_with_the_reason(pair, capsys):
    folder = pair.baseline.path.parent
    arguments = ["--path", str(folder), "--device", "cpu", "--check", "--json", str(folder / "record.json")]
    assert benchmark.main(arguments) == 0
    (row,) = load_record(folder / "record.json").pairs[0].rows
    assert (row.variant, row.verdict, reason_of(row)) == ("optimized", "skipped", NOT_INTERPRETED)
    assert "written in Gluon" in capsys.readouterr().out


@pytest.mark.usefixtures("in_this_process")
def test_its_traffic_is_not_counted_and_the_baselines_is(pair):
    baseline, own = count_pair(pair, "default", MACHINES["sm_90"])
    assert baseline.traffic and not baseline.reason
    assert (own.traffic, own.reason, own.failed) == (None, NOT_INTERPRETED, False)
