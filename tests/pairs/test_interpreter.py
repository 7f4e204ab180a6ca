"""Triton's interpreter does what it did, faster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

COMPARE = """
import torch, triton, triton.language as tl
from triton.runtime import interpreter as interpreting
from common.pairs import interpreter

slow = interpreting.ReduceOps.generic_reduce, interpreting.InterpretedFunction.__call__

@triton.jit
def pairs(a, b, c, d):
    return a + c, tl.maximum(b, d)

@triton.jit
def affine(a, b, c, d):  # associative, and the order tells
    return a * c, b * c + d

@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def doubled(x):
    return x * 2 + tl.zeros(x.shape, tl.float32)

@triton.jit
def kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 8)[:, None] * 4 + tl.arange(0, 4)[None, :])
    a, b = tl.reduce((doubled(x), x), 0, pairs)
    c, d = tl.reduce((x, x), 1, affine, keep_dims=True)
    e = tl.reduce(x, None, larger)
    tl.store(out_ptr + tl.arange(0, 4), a)
    tl.store(out_ptr + 4 + tl.arange(0, 4), b)
    tl.store(out_ptr + 8 + tl.arange(0, 8)[:, None], c)
    tl.store(out_ptr + 16 + tl.arange(0, 8)[:, None], d)
    tl.store(out_ptr + 24, e)
    whole, column = tl.arange(0, 4).to(tl.int64), tl.arange(0, 8)[:, None]
    mixed = (x.to(tl.float16) * x + whole) / 2 - tl.where(column % 3 < whole, 1.5, column)
    tl.store(out_ptr + 25 + column * 4 + tl.arange(0, 4), mixed)

@triton.jit
def misfit_kernel(x_ptr):
    tl.store(x_ptr, tl.sum(tl.arange(0, 8) + tl.arange(0, 4)))

def misfit():
    try:
        misfit_kernel[(1,)](x)
    except Exception as error:
        return str(error)

x, found, said = torch.arange(-13.0, 19.0).sin() + 1.5, [], []
for _ in range(2):
    found.append(torch.full((57,), float("nan")))
    kernel[(1,)](x, found[-1])
    said.append(misfit())
    interpreter.speed_up_interpreter()
assert interpreting.ReduceOps.generic_reduce is not slow[0] and interpreting.InterpretedFunction.__call__ is not slow[1]
torch.testing.assert_close(*found)
assert bool(found[0].isfinite().all())
assert said[0] == said[1] and "incompatible dimensions at index 0: 8 and 4" in said[0], said
print("near")

@triton.jit
def next_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) + 1)

largest = torch.tensor([2**31 - 1], dtype=torch.int32)
next_kernel[(1,)](largest)
print(largest.item())
"""


def run_interpreted(program):
    run = subprocess.run(
        [sys.executable, program], env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.rest
def test_operators_on_all_types_give_the_same_bits_and_errors():
    assert re.fullmatch(r"\d{5} \[\]\n", run_interpreted(Path(__file__).with_name("every_type.py")))


@pytest.mark.rest
def test_a_reduction_of_a_kernels_own_finds_what_it_did_and_integers_wrap_around(tmp_path):
    """In a file: Triton reads its kernels' source."""
    (tmp_path / "compare.py").write_text(COMPARE, encoding="utf-8")
    assert run_interpreted(tmp_path / "compare.py") == f"near\n{-(2**31)}\n"
