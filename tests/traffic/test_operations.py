"""What torch's operations ask of the memory, against what is counted by hand."""

import subprocess
import sys

import pytest
import torch

from common.pairs.pair import ROOT
from common.traffic import count, counting
from common.traffic.meter import Meter
from common.traffic.torch_hooks import MetaAsGpu, Operations

N = 1 << 12
BYTES = 4 * N


def x():
    return torch.ones(N)


def test_an_operation_reads_its_inputs_and_writes_its_result_once():
    a, b = x(), x()
    found = count(torch.add, a, b)
    assert (found.launches, found.total.read_bytes, found.total.written_bytes) == (1, 2 * BYTES, BYTES)
    assert (found.sectors, found.distinct_bytes, found.allocated_bytes) == (3 * BYTES / 32, 3 * BYTES, BYTES)
    assert [kernel.name for kernel in found.kernels] == ["torch.add"]


@pytest.mark.parametrize(
    ("call", "launches", "read", "written", "allocated"),
    [
        (lambda a: a.view(64, 64).T[1:], 0, 0, 0, 0),  # views
        (lambda a: torch.empty_like(a), 0, 0, 0, BYTES),
        (lambda a: a.new_empty(N), 0, 0, 0, BYTES),
        (lambda a: torch.zeros(N), 1, 0, BYTES, BYTES),
        (lambda a: torch.zeros_like(a), 1, 0, BYTES, BYTES),  # of `a` its form alone
        (lambda a: a.view(64, 64)[0].copy_(a.view(64, 64)[0]), 0, 0, 0, 0),  # as `a[0] += b` ends with
        (lambda a: a.add_(1), 1, BYTES, BYTES, 0),  # in place
        (lambda a: a.fill_(1), 1, 0, BYTES, 0),
        (lambda a: a.copy_(torch.empty(N)), 1, BYTES, BYTES, BYTES),
        (lambda a: torch.mul(a, a, out=a), 1, 2 * BYTES, BYTES, 0),  # two operands, one tensor
        (lambda a: a[:1].expand(N) + a, 1, BYTES + 4, BYTES, BYTES),  # one number, however often it is shown
        (lambda a: torch.softmax(a.view(64, 64), 1), 1, BYTES, BYTES, BYTES),
        (lambda a: a.sum(), 1, BYTES, 4, 4),
        (lambda a: torch.nn.functional.gelu(a) * 2, 2, 2 * BYTES, 2 * BYTES, 2 * BYTES),
    ],
)
def test_what_is_read_written_and_allocated(call, launches, read, written, allocated):
    found = count(call, x())
    assert found.launches == launches
    assert (found.total.read_bytes, found.total.written_bytes, found.allocated_bytes) == (read, written, allocated)


def test_the_peak_is_of_what_lives_at_the_same_time():
    def kept():
        y = a * 2
        z = y * 3
        return y + z

    a = x()
    chain = count(lambda: ((a * 2) * 3) * 4)
    assert (chain.peak_bytes, chain.allocated_bytes) == (2 * BYTES, 3 * BYTES)
    assert count(kept).peak_bytes == 3 * BYTES


def test_out_is_written_and_not_read():
    a, out = x(), torch.empty(N)
    found = count(torch.mul, a, a, out=out).total
    assert (found.written_bytes, found.read_bytes, found.distinct_bytes) == (BYTES, 2 * BYTES, 2 * BYTES)


def test_two_views_of_the_same_elements_are_the_same_bytes_and_of_others_are_not():
    a, half = x(), BYTES // 2
    same = count(lambda: torch.stack([a[: N // 2], a[: N // 2]]))
    other = count(lambda: torch.stack([a[: N // 2], a[N // 2 :]]))
    assert (same.total.read_bytes, same.distinct_bytes) == (BYTES, half + BYTES)
    assert (other.total.read_bytes, other.distinct_bytes) == (BYTES, 2 * BYTES)


@pytest.mark.parametrize(
    ("call", "flops"),
    [
        (lambda: torch.ones(8, 16) @ torch.ones(16, 4), {"fp32_flops": 2 * 8 * 16 * 4}),
        (lambda: torch.ones(8, 4).addmm_(torch.ones(8, 16), torch.ones(16, 4)), {"fp32_flops": 2 * 8 * 16 * 4}),
        (lambda: torch.ones(3, 8, 16).half() @ torch.ones(3, 16, 4).half(), {"fp16_flops": 3 * 2 * 8 * 16 * 4}),
        (lambda: torch.nn.functional.linear(torch.ones(8, 16), torch.ones(4, 16), torch.ones(4)), {"fp32_flops": 1024}),
        (lambda: torch.ones(8) + 1, {}),
    ],
)
def test_products_count_their_flops(call, flops):
    assert count(call).flops == flops


def test_products_of_float32_are_in_the_precision_that_a_gpu_is_set_to(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32")
    assert count(lambda: torch.ones(8, 16) @ torch.ones(16, 4)).flops == {"tf32_flops": 2 * 8 * 16 * 4}


def test_a_backward_pass_is_counted_too():
    a, w = torch.ones(8, 16, requires_grad=True), torch.ones(16, 4, requires_grad=True)
    with counting() as meter:
        (a @ w).sum().backward()
    assert meter.traffic.flops == {"fp32_flops": 3 * 2 * 8 * 16 * 4}
    assert torch.equal(a.grad, torch.full((8, 16), 4.0))


def test_on_meta_what_crosses_to_the_host_and_back_is_no_launch():
    meter = Meter()
    with MetaAsGpu(), Operations(meter):
        host = torch.empty(N, pin_memory=True)
        device = torch.empty(N, device="meta")
        device.copy_(host, non_blocking=True)
        back = device.cpu()
        back.copy_(device)
        host.to("meta")
    assert meter.traffic.copied == {"h2d_bytes": 2 * BYTES, "d2h_bytes": 2 * BYTES}
    assert (meter.traffic.launches, back.device.type, back.shape) == (0, "cpu", (N,))


def test_what_torch_compile_made_is_counted_as_it_is_written():
    compiled = []
    backend = lambda graph, inputs: compiled.append(graph) or graph.forward  # noqa: E731
    function = torch.compile(lambda a: torch.relu(a * 2 + 1), backend=backend, fullgraph=True)
    assert [kernel.name for kernel in count(function, x()).kernels] == ["torch.mul", "torch.add", "torch.relu"]
    assert compiled == []
    function(x())  # afterwards all is as before
    assert len(compiled) == 1


FRESH = """
import sys
import torch
from common.traffic import count

x = torch.ones(64)
count(torch.add, x, x)
assert "torch._dynamo" not in sys.modules
made = torch.compile
function = lambda a: torch.compile(lambda b: torch.relu(b * 2 + 1), fullgraph=True)(a)
print(*(kernel.name for kernel in count(function, x).kernels), torch.compile is made)

# As in a notebook: its own module has no file, and a kernel that is counted must not give it one. Children would run it
import linecache
from common.isolation import worker

source = '''
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, out_ptr):
    offsets = tl.arange(0, 64)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))
'''
linecache.cache["cell"] = len(source), None, source.splitlines(True), "cell"
exec(compile(source, "cell", "exec"))
out = torch.zeros(64)
count(copy_kernel[(1,)], x, out)
print(out.equal(x), "__file__" in globals(), worker.call(id) > 0)

# Gluon, which a launch imports, has Triton's own functions, not the interpreter's
import triton.experimental.gluon.language as gl
print(gl.exp2.__wrapped__.__globals__["__name__"])
"""


@pytest.mark.rest
def test_counting_in_a_fresh_process_imports_no_compiler_and_does_not_keep_a_child_from_starting():
    """What is first compiled meanwhile is counted as it is written."""
    pytest.importorskip("triton")
    done = subprocess.run([sys.executable, "-c", FRESH], cwd=ROOT, capture_output=True, text=True, check=False)
    said = "torch.mul torch.add torch.relu True True False True triton.language.core"
    assert " ".join(done.stdout.split()) == said, done.stderr
