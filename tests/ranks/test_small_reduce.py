"""ch6/optimized_small_reduce_kernel.py in Triton's interpreter: processes that share memory stand for GPUs."""

import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from unittest.mock import patch

import pytest
import torch

from common.pairs.pair import ROOT, load

pytest.importorskip("triton")
KERNEL = ROOT / "ch6/optimized_small_reduce_kernel.py"
CALLS = 50
HANGS_S = 60  # a process that waits in vain would keep the tests from ending


@pytest.fixture(scope="module")
def processes():
    from edges import interpret

    with ExitStack() as stack:
        pools = [ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=interpret) for _ in range(3)]
        yield [stack.enter_context(pool) for pool in pools]


def xs_of(rank, n):
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(n, generator=generator) for _ in range(CALLS)]


def summed(path, folder, rank, ranks, n, late_s):
    """The sums that one process has. `late_s`: seconds that it waits before each sum, and before it reads."""
    from triton.runtime.interpreter import interpreter_builder as builder

    module, atomic, end = load(path), builder.create_atomic_rmw, time.monotonic() + HANGS_S

    def memory(what, size, dtype):
        files = [str(folder / f"{what}.{each}") for each in range(ranks)]
        return tuple(torch.from_file(file, shared=True, size=size, dtype=dtype) for file in files)

    def late(*arguments):
        found = atomic(*arguments)
        time.sleep(late_s)
        if time.monotonic() > end:
            raise TimeoutError("waits for a flag that no process sets")
        return found

    halves = memory("halves", 2 * n, torch.float32)
    flags = memory("flags", module.PROGRAMS * ranks, torch.int32)
    sums = []
    with patch.object(module.dist, "get_rank", lambda: rank), patch.object(builder, "create_atomic_rmw", late):
        for x in xs_of(rank, n):
            time.sleep(late_s)
            sums += module.run([x], halves, flags)
    return sums


def everywhere(processes, folder, n, path=KERNEL, late_s=0.0, ranks=2):
    """The sums of each process; the last one is late."""
    for rank in range(ranks):
        for what, size in (("halves", 2 * n), ("flags", 64 * ranks)):
            (folder / f"{what}.{rank}").write_bytes(bytes(4 * size))
    running = [
        processes[rank].submit(summed, path, folder, rank, ranks, n, late_s * (rank == ranks - 1))
        for rank in range(ranks)
    ]
    return [each.result() for each in running]


@pytest.mark.parametrize("late_s", [0.0, 0.001], ids=["together", "one is late"])
@pytest.mark.parametrize(
    ("ranks", "n"), [(2, 3001), *(pytest.param(*few, marks=pytest.mark.rest) for few in ((2, 127), (3, 1)))]
)
def test_sums_in_a_row_are_right_and_equal_in_all_processes(processes, tmp_path, ranks, n, late_s):
    right = [sum(each) for each in zip(*(xs_of(rank, n) for rank in range(ranks)), strict=True)]
    for mine in everywhere(processes, tmp_path, n, late_s=late_s, ranks=ranks):
        assert len(mine) == CALLS and all(map(torch.equal, mine, right))


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("while tl.atomic_add(flags[RANK] + mine + rank, 0, sem=\"acquire\", scope=\"sys\") < number:", "while False:"),
        ("number % 2 * n + offsets", "offsets"),  # one half only
    ],
    ids=["without the wait", "without the second half"],
)  # fmt: skip
def test_without_a_part_of_it_a_sum_is_wrong(processes, tmp_path, line, changed):
    text = KERNEL.read_text()
    assert text.count(line) == 1
    (tmp_path / "symmetric.py").write_text((ROOT / "ch6/symmetric.py").read_text())
    (tmp_path / KERNEL.name).write_text(text.replace(line, changed))
    right = [sum(each) for each in zip(xs_of(0, 127), xs_of(1, 127), strict=True)]
    found = everywhere(processes, tmp_path, 127, tmp_path / KERNEL.name, late_s=0.001)
    assert not all(torch.equal(a, b) for mine in found for a, b in zip(mine, right, strict=True))
