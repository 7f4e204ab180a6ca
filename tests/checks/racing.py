"""Kernels whose programs or lanes race, each with an honest twin. Run where Triton interprets (see conftest.py)."""

from pathlib import Path
from unittest.mock import patch

import torch
import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError

from common.checks.kernel_memory import BadAccess, watched
from common.engine.job import Job
from common.engine.measure import measure_pair
from common.machine.device import describe
from common.pairs.pair import discover


@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))
    if ATOMIC:
        tl.atomic_add(out_ptr, part)
    else:
        tl.store(out_ptr, tl.load(out_ptr) + part)


@triton.jit
def total_and_flag(x_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr, AGAIN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))
    total = tl.atomic_add(out_ptr, part) + part
    if AGAIN:
        tl.store(out_ptr, total)  # of programs in turn what is there already
    tl.store(flag_ptr, 1.0)  # all of them the same


@triton.jit
def last_arriver(x_ptr, parts_ptr, count_ptr, out_ptr, PARTS: tl.constexpr, SEM: tl.constexpr, WAITS: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(parts_ptr + pid, tl.load(x_ptr + pid))
    arrived = tl.atomic_add(count_ptr, 1, sem=SEM)
    if (arrived == tl.num_programs(0) - 1) or not WAITS:
        tl.store(out_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, PARTS))))


@triton.jit
def locked(x_ptr, lock_ptr, out_ptr, LOCKS: tl.constexpr):
    if LOCKS:
        while tl.atomic_cas(lock_ptr, 0, 1) == 1:
            pass
    tl.store(out_ptr, tl.load(out_ptr) + tl.load(x_ptr + tl.program_id(0)))
    if LOCKS:
        tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def reverse(x_ptr, y_ptr, BLOCK: tl.constexpr, BARRIER: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(y_ptr + lanes, tl.load(x_ptr + lanes))
    if BARRIER:
        tl.debug_barrier()
    tl.store(x_ptr + lanes, tl.load(y_ptr + BLOCK - 1 - lanes))


@triton.jit
def halo(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + offsets - 1, mask=(offsets > 0) & (offsets < n), other=0.0)
    tl.store(y_ptr + offsets, left, mask=offsets < n)


@triton.jit
def same_value(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.minimum(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), n - 1)  # the last programs store twice
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets))


@triton.jit
def waits(flag_ptr, out_ptr):
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag_ptr, 0) == 0:
            pass
        tl.store(out_ptr, 1.0)
    else:
        tl.atomic_xchg(flag_ptr, 1)


@triton.jit
def wide(out_ptr):
    tl.atomic_add(out_ptr, 1.0)


@triton.jit
def unmasked_maximum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + lanes, mask=lanes < n)))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, PRECISION: tl.constexpr):
    places = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)
    tl.store(c_ptr + places, tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places), input_precision=PRECISION))


def _zeros(count=1, dtype=torch.float32):
    return torch.zeros(count, dtype=dtype)


def _counter():
    return _zeros(dtype=torch.int32)


CASES = {
    "a sum": lambda x: total[(4,)](x, _zeros(), 60, 16, False),
    "a sum, atomic": lambda x: total[(4,)](x, _zeros(), 60, 16, True),
    "a sum, stored again": lambda x: total_and_flag[(4,)](x, _zeros(), _zeros(), 60, 16, True),
    "a sum and one flag": lambda x: total_and_flag[(4,)](x, _zeros(), _zeros(), 60, 16, False),
    "the last arriver": lambda x: last_arriver[(4,)](x, _zeros(4), _counter(), _zeros(), 4, "acq_rel", True),
    "the last arriver, relaxed": lambda x: last_arriver[(4,)](x, _zeros(4), _counter(), _zeros(), 4, "relaxed", True),
    "no last arriver": lambda x: last_arriver[(4,)](x, _zeros(4), _counter(), _zeros(), 4, "acq_rel", False),
    "a lock": lambda x: locked[(4,)](x, _counter(), _zeros(), True),
    "no lock": lambda x: locked[(4,)](x, _counter(), _zeros(), False),
    "lanes": lambda x: reverse[(1,)](x, _zeros(16), 16, False),
    "lanes and a barrier": lambda x: reverse[(1,)](x, _zeros(16), 16, True),
    "a halo": lambda x: halo[(4,)](x, _zeros(64), 60, 16),
    "a halo in place": lambda x: halo[(4,)](x, x, 60, 16),
    "one value twice": lambda x: same_value[(4,)](x, _zeros(64), 50, 16),
    "a wait": lambda x: waits[(2,)](_counter(), _zeros()),
    "a grid": lambda x: wide[(1, 65_536)](_zeros()),
}


def error_of(name, order=""):
    """What is said of a case; empty if nothing is."""
    torch.manual_seed(0)
    try:
        with watched(order):
            CASES[name](torch.randn(64))
    except (InterpreterError, BadAccess) as error:
        while error.__cause__:
            error = error.__cause__
        return f"{type(error).__name__}: {error}"
    return ""


def masked_maximum(undefined):
    """Of five numbers below zero, with lanes that are masked without `other`."""
    out = _zeros()
    with watched("", undefined):
        unmasked_maximum[(1,)](-torch.arange(1.0, 6.0), out, 5, 8)
    return out.item()


def total_after_one_program():
    """(A sum by programs whose races are not looked for, after a launch of one whose are; the right sum)."""
    x, out = torch.arange(64.0), _zeros()
    with watched():
        total[(1,)](x, _zeros(), 16, 16, True)
    with watched(races=False):
        total[(4,)](x, out, 60, 16, True)
    return out.item(), x[:60].sum().item()


def product_error(precision):
    """Of a product of two float32 matrices, relative to its largest element."""
    a, b, c = torch.randn(16, 16), torch.randn(16, 16), torch.empty(16, 16)
    product[(1,)](a, b, c, precision)
    right = a.double() @ b.double()
    return float((c - right).abs().max() / right.abs().max())


def verdicts_without(folder, guard):
    """Label -> verdict of a pair's versions in this process, while the function of this name does nothing."""
    module, _, name = guard.rpartition(".")
    (pair,) = discover(Path(folder))
    labels = [version.label for version in pair.versions]
    job = Job(pair, "default", "cpu", describe("cpu"), {}, labels, [], stressed=False)
    with patch(f"{module}.{name}", lambda *arguments: arguments[0] if name == "or_undefined" else None):
        result = measure_pair(job, lambda *message: None)
    return {row.variant: str(row.verdict) for row in result.rows}
