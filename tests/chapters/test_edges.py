"""What the tests of kernels stand on: the interpreter that they ask keeps to the tensors it is given."""

import pytest
import torch

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
