"""The kernels of ch6/small_reduce in Triton's interpreter: processes that share memory stand for GPUs."""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from math import prod
from multiprocessing import get_context
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch

from common.checks import kernel_memory
from common.pairs.pair import ROOT, load

pytest.importorskip("triton")
WAITS = {"kernel": "create_atomic_rmw", "ll": "create_masked_load"}  # by what a version waits for another process
PATHS = {name: ROOT / f"ch6/optimized_small_reduce_{name}.py" for name in WAITS}
CALLS = 8  # in a row: of the two halves of memory that take turns each is used again
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
    """The sums that one process has. `late_s`: seconds that it waits before each sum, and around each `WAITS`."""
    from triton.runtime.interpreter import interpreter_builder as builder

    module, waits, end = load(path), WAITS[path.stem.split("_")[-1]], time.monotonic() + HANGS_S
    access = getattr(builder, waits)

    def symmetric(shape, dtype, device):
        files = [str(folder / f"{dtype}{shape}.{each}") for each in range(ranks)]
        parts = [torch.from_file(file, shared=True, size=prod(shape), dtype=dtype) for file in files]
        return None, tuple(part.view(shape) for part in parts)

    def late(*arguments):
        time.sleep(late_s)
        found = access(*arguments)
        time.sleep(late_s)
        if time.monotonic() > end:
            raise TimeoutError("waits for a flag that no process sets")
        return found

    group = SimpleNamespace(get_rank=lambda: rank, get_world_size=lambda: ranks)
    sums = []
    patient = patch.object(kernel_memory, "PATIENCE", sys.maxsize)  # here others do run, when the machine lets them
    with patient, patch.multiple(module, dist=group, symmetric=symmetric), patch.object(builder, waits, late):
        for x in xs_of(rank, n):
            time.sleep(late_s)
            sums += module.run([x], **module.setup([x]))
    return sums


def everywhere(processes, folder, n, path, late_s=0.0, ranks=2):
    """The sums of each process; the last one is late."""
    running = [
        processes[rank].submit(summed, path, folder, rank, ranks, n, late_s * (rank == ranks - 1))
        for rank in range(ranks)
    ]
    return [each.result() for each in running]


def test_the_graph_replays_the_kernel_that_is_tested_here():
    graph, ll = ((ROOT / f"ch6/optimized_small_reduce_{name}.py").read_text() for name in ("graph", "ll"))
    begin, end = "@triton.jit", "def setup("
    assert graph[graph.index(begin) : graph.index(end)] == ll[ll.index(begin) : ll.index(end)]


@pytest.mark.rest
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize(("ranks", "n", "late_s"), [(2, 1025, 0.001), (3, 1, 0.0)], ids=["one is late", "together"])
def test_sums_in_a_row_are_right_and_equal_in_all_processes(processes, tmp_path, path, ranks, n, late_s):
    right = [sum(each) for each in zip(*(xs_of(rank, n) for rank in range(ranks)), strict=True)]
    for mine in everywhere(processes, tmp_path, n, path, late_s, ranks):
        assert len(mine) == CALLS and all(map(torch.equal, mine, right))


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "line", "changed"),
    [
        (
            "kernel",
            'while tl.atomic_add(flags[RANK] + mine + rank, 0, sem="acquire", scope="sys") < number:',
            "while False:",
        ),
        ("kernel", "number % 2 * n + offsets", "offsets"),
        ("ll", "while tl.min((word >> 32).to(tl.int32)) < number:", "while False:"),
        ("ll", "number % 2 * RANKS * size", "0"),
    ],
    ids=["no wait", "one half", "ll, no wait", "ll, one half"],
)
def test_without_a_part_of_it_a_sum_is_wrong(processes, tmp_path, name, line, changed):
    text = PATHS[name].read_text()
    assert text.count(line) == 1
    (tmp_path / "symmetric_memory.py").write_text((ROOT / "ch6/symmetric_memory.py").read_text())
    (tmp_path / PATHS[name].name).write_text(text.replace(line, changed))
    right = [sum(each) for each in zip(xs_of(0, 127), xs_of(1, 127), strict=True)]
    found = everywhere(processes, tmp_path, 127, tmp_path / PATHS[name].name, late_s=0.05)  # many calls of the other
    assert not all(torch.equal(a, b) for mine in found for a, b in zip(mine, right, strict=True))
