"""What the tests of kernels stand on: the interpreter that they ask keeps to the tensors it is given."""

import pytest
import torch
from edges import assert_near

pytest.importorskip("triton")

SHIFTED = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, by, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets + by))


def run(x, by):
    out = torch.empty_like(x)
    copy_kernel[(1,)](x, out, by, BLOCK=64)
    return out
"""


def test_a_load_beyond_its_tensor_is_refused(call, tmp_path):
    version = type("Version", (), {"path": tmp_path / "shifted.py"})
    version.path.write_text(SHIFTED)
    x = torch.arange(64.0)
    assert call(version, "cpu", {"x": x, "by": 0})[0].equal(x)
    for by in (1, -1):
        with pytest.raises(Exception, match="a kernel reads outside of all its arrays"):
            call(version, "cpu", {"x": x, "by": by})


def test_a_part_that_is_1_percent_too_large_is_not_near():
    right = [torch.randn(5, 7), torch.randn(3)]
    assert_near(right, right)
    for wrong in ([1.01 * right[0], right[1]], [right[0], 1.01 * right[1]]):
        with pytest.raises(AssertionError, match="not close"):
            assert_near(wrong, right)
