"""The kernels of chapter 2's page on CUDA C++ compute what it says: Triton's interpreted, CUDA C++ compiled and run."""

import re

import pytest
import torch

from common.notebook import nb
from common.pairs.pair import ROOT
from common.xray.compilers import Binary, nvrtc_compile
from common.xray.sass import dissect

PAGE = (ROOT / "ch2/CUDA.md").read_text(encoding="utf-8")
CUDA = {re.search(r"void (\w+)\(", text)[1]: text for text in re.findall(r"```cpp\n(.*?)```", PAGE, re.DOTALL)}
SHAPES = [(1, 1), (3, 127), (5, 128), (2, 1000)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_row_sum_in_triton(shape, tmp_path):
    pytest.importorskip("triton")
    (text,) = re.findall(r"```python\n(@triton.jit.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "row_sum.py"  # Triton reads a kernel's source
    path.write_text(f"import triton\nimport triton.language as tl\n\n\n{text}", encoding="utf-8")
    x, out = torch.randn(shape), torch.full(shape[:1], float("nan"))
    _, accesses = nb.traced(nb.load(path).row_sum, x, out)
    assert torch.allclose(out, x.sum(1), atol=1e-4) and accesses


@pytest.mark.parametrize("name", ["row_sum", "twice"])
def test_the_kernels_in_cuda_compile(name):
    pytest.importorskip("cuda.bindings.nvrtc")
    pytest.importorskip("triton")  # its tools read machine code
    cubin, ptx = nvrtc_compile(CUDA[name], "sm_90")
    found = dissect(Binary(name, cubin, ptx, 128, 0), nb.MACHINES["sm_90"])
    assert found.widest("global loads") == {"row_sum": 32, "twice": 128}[name]
    assert bool(found.total("barriers")) == bool(found.shared_bytes) == (name == "row_sum")


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_the_row_sum_in_cuda(shape):
    import cupy
    import numpy

    x, out = torch.randn(shape, device="cuda"), torch.full(shape[:1], float("nan"), device="cuda")
    kernel, arguments = cupy.RawKernel(CUDA["row_sum"], "row_sum"), [cupy.asarray(each) for each in (x, out)]
    kernel((shape[0],), (128,), (*arguments, numpy.int32(shape[1])))
    torch.cuda.synchronize()
    assert torch.allclose(out, x.sum(1), atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 4, 127, 1000, 1001])
def test_twice_in_cuda(n):
    import cupy
    import numpy

    x, y = torch.randn(n, device="cuda"), torch.full((n,), float("nan"), device="cuda")
    arguments = [cupy.asarray(each) for each in (x, y)]
    cupy.RawKernel(CUDA["twice"], "twice")((-(-n // 512),), (128,), (*arguments, numpy.int32(n)))
    torch.cuda.synchronize()
    assert torch.equal(y, 2 * x)
