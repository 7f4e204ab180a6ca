"""What a pair can do to a GPU costs that pair; the next one is unharmed; other users of the GPU are named."""

import os
import re
import signal
import subprocess
import sys
from functools import partial

import pytest
from samples import HONEST, reason_of, row_of, version, wait_until, write_pair

from common.engine import runner
from common.isolation import worker
from common.machine.device import describe
from common.machine.throttling import clocks_now, slowdowns
from common.pairs.pair import ROOT, discover
from common.record.outcome import WITH_SPEEDUP

pytestmark = pytest.mark.gpu

HUNG_S = 20.0
WRITES = """
    import cupy
    seen = []
    code = 'extern "C" __global__ void write(float* x) { x[0] = 1; }'
    write = cupy.RawKernel(code, "write")
"""
WRECKS = {  # text of the variant, verdict, what is said
    "a_illegal_access": (
        version(f"if not seen:\n    seen.append(True)\n    write((1,), (1,), (0x10,))\n{HONEST}", extra=WRITES),
        "crashed", "illegal memory access|IllegalAddress|launch failure",
    ),
    "c_fills_memory": (
        version(f"kept.append(torch.empty(1 << 33, device='cuda'))\n{HONEST}", extra="kept = []"),
        "crashed", "OutOfMemoryError|out of memory",
    ),
    "e_never_ends": (  # the driver may wait at work
        version(f"torch.cuda._sleep(1 << 62)\n{HONEST}"), "crashed", "^(hung|too slow).* no progress",
    ),
    "g_asserts": (
        version(f"torch.zeros(3, device='cuda')[x.long() * 0 + 7]\n{HONEST}"), "crashed", "device-side assert",
    ),
    "i_too_large": (
        version(inputs='return {"x": torch.empty(n << 40, device=device), "w_shift": torch.empty(1, device=device)}'),
        "skipped", "not fit in memory; .* GiB are free",
    ),
}  # fmt: skip

LONG_ENOUGH = {"check": {"n": 127}, "default": {"n": 1 << 24}}  # for the clock


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrecks")
    for name, (text, *_) in WRECKS.items():
        write_pair(folder, name, text, text if name == "i_too_large" else None)
    for letter in "bdfhj":  # after each of them, in the order of names
        write_pair(folder, f"{letter}_unharmed", version(), version(sizes=LONG_ENOUGH))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "call", partial(worker.call, deadline_s=HUNG_S))
        return runner.run_pairs(discover(folder), device="cuda:0", fast=True)


@pytest.mark.parametrize("name", WRECKS)
def test_what_a_pair_does_to_the_gpu_is_told(name, record):
    row, (_, verdict, reason) = row_of(record, name), WRECKS[name]
    assert (row.verdict, row.ratio) == (verdict, None)
    assert re.search(reason, reason_of(row)), reason_of(row)


@pytest.mark.parametrize("letter", "bdfhj")
def test_the_next_pair_is_unharmed(letter, record):
    (pair,) = [pair for pair in record.pairs if pair.name == f"{letter}_unharmed"]
    (row,) = pair.rows
    assert row.verdict in WITH_SPEEDUP, reason_of(row)
    assert pair.arms["baseline"].median_s > 0
    assert pair.clocks["sm_mhz"] > 0


def test_another_process_on_the_gpu_is_named(tmp_path):
    write_pair(tmp_path / "pairs", "double", version())
    ready = tmp_path / "ready"
    code = f"import time, torch; x = torch.ones(1, device='cuda'); open({str(ready)!r}, 'w').close(); time.sleep(120)"
    # started by a shell that ends at once, or it would be one of our own
    pid = int(subprocess.check_output(["sh", "-c", '"$0" -c "$1" >&2 & echo $!', sys.executable, code], cwd=ROOT))
    try:
        wait_until(ready.exists)
        (pair,) = runner.run_pairs(discover(tmp_path / "pairs"), device="cuda:0", fast=True).pairs
    finally:
        os.kill(pid, signal.SIGKILL)
    assert [text for text in pair.neighbours if f"(pid {pid}) also uses this GPU" in text]


def test_slowdowns_are_counted_by_the_driver():
    info = describe("cuda:0")
    counters = slowdowns(info)
    assert {"thermal slowdown (hardware)", "thermal slowdown (software)", "power brake"} <= counters.keys()
    assert all(isinstance(count, int) and count >= 0 for count in counters.values())
    assert clocks_now(info["uuid"])["celsius"] > 0
