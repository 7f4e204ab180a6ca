"""What one rank of a pair does to the others: it is named, all of them end, and the next pair goes on."""

import re
import textwrap

import psutil
import pytest
from samples import reason_of, row_of, write_pair

from common.engine.runner import run_pairs
from common.isolation import worker
from common.pairs.pair import discover
from common.record.record_file import load_record, save_record

pytestmark = pytest.mark.xdist_group("ranks")  # with pytest -n, one process: they run once for all tests
HUNG_S, SLOW_S = 4.0, 60.0

HEAD = '''"""Sum a vector over all processes: 4 bytes sent per element."""
import os
import time
import torch
import torch.distributed as dist
RANKS = 2
SIZES = {"check": {"n": 127}, "check/one": {"n": 1}, "default": {"n": 4096}}
'''
BODY = """
def inputs(n=127, rank=0, ranks=2, device="cuda"):
    return {"x": torch.randn(ranks, n, device=device)[rank].clone()}
def run(x):
    last = dist.get_rank() == 1
    total = x.clone()
"""
REFERENCE = """
def reference(x):
    return [sum(x)] * len(x)
def cost(x):
    return {"link_bytes": x.nbytes}
"""
HONEST = "dist.all_reduce(total)\nreturn total"


def version(run: str = HONEST, head: str = HEAD.replace("RANKS = 2\n", "").replace("SIZES", "_SIZES")) -> str:
    return head + BODY + textwrap.indent(run, "    ") + "\n"


CASES = {  # the variant's run, its verdict, its reason
    "raises": (f"if last: raise ValueError('no luck')\n{HONEST}", "crashed", r"^rank 1: ValueError: no luck"),
    "raises_everywhere": ("raise ValueError('no luck')", "crashed", r"^ValueError: no luck"),
    "segfault": (f"if last: os.kill(os.getpid(), 11)\n{HONEST}", "crashed", "^rank 1: killed by SIGSEGV"),
    "exits_politely": (f"if last: os._exit(0)\n{HONEST}", "crashed", "^rank 1: exited with status 0 before it"),
    "hangs": (
        f"if last: time.sleep(600)\n{HONEST}",
        "crashed",
        r"^hung: rank 1 is at optimized_hangs.py:\d+: if last: time.sleep\(600\); rank 0 waits in all_reduce at opt",
    ),
    "returns_early": (
        f"if last: return total\n{HONEST}",
        "crashed",
        r"^hung: .*rank 0 waits in all_reduce at .*rank 1 has come back and waits for the others",
    ),
    "sums_in_other_parts": (
        "for part in total.chunk(1 + last):\n    dist.all_reduce(part)\nreturn total",
        "crashed",
        "^rank [01]: .*(in another order|gloo)",  # who finds it first is chance
    ),
    "leaves_it_pending": ("dist.all_reduce(total, async_op=True)\nreturn total", "invalid", "wrong answer"),
    "does_not_wait": (
        "work = dist.all_reduce(total, async_op=True)\nif not last: work.wait()\nreturn total",
        "invalid",
        "^rank [01]: wrong answer",  # rank 1 spoils what it has not yet sent
    ),
    "sends_less_and_is_right": (  # it knows what the other has: here from a file
        "from pathlib import Path\nfile = str(Path(__file__).with_suffix('.x'))\ntorch.save(x, file + str(int(last)))\n"
        "dist.all_reduce(total[:1].clone())\nreturn x + torch.load(file + str(int(not last)))",
        "invalid", "sends 4 bytes to others, the work needs at least 508",
    ),
    "ends_otherwise": ("dist.all_reduce(total)\nreturn total + last", "invalid", "^rank 1: wrong answer at size check"),
    "changes_its_input": (
        f"if last: x.add_(1)\n{HONEST}", "invalid", "^rank 1: changed its input `x`"
    ),
    "zz_honest": (HONEST, "verified", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def faults(machine, tmp_path_factory):
    """(The record of one run over all of them, the processes that it left behind.)"""
    folder, call, before = tmp_path_factory.mktemp("faults"), worker.call, set(psutil.Process().children(True))
    for name, (run, _, _) in CASES.items():
        write_pair(folder, name, version(run), version(head=HEAD) + REFERENCE)

    def impatient(function, job, errand=None, **options):
        hangs = job.pair.name in ("hangs", "returns_early")
        return call(function, job, errand, **options, deadline_s=HUNG_S if hangs else SLOW_S)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "call", impatient)
        record = run_pairs(discover(folder), device="cpu", check_only=True, stressed=False)
    left = set(psutil.Process().children(True)) - before
    return record, [each for each in left if "forkserver" not in " ".join(each.cmdline())]


@pytest.mark.rest
@pytest.mark.parametrize("name", CASES)
def test_a_fault_of_a_rank_is_named(name, faults):
    row = row_of(faults[0], name)
    assert row.verdict == CASES[name][1], reason_of(row)
    assert re.search(CASES[name][2], reason_of(row)), reason_of(row)


@pytest.mark.rest
def test_no_process_is_left_and_the_record_can_be_kept(faults, tmp_path):
    record, left = faults
    assert left == []
    save_record(record, tmp_path / "r.json")
    assert len(load_record(tmp_path / "r.json").pairs) == len(CASES)


def test_a_reference_has_an_answer_for_each_rank(machine, tmp_path):
    reference = REFERENCE.replace("[sum(x)] * len(x)", "[sum(x)]")
    write_pair(tmp_path, "short", version(), version(head=HEAD) + reference)
    row = row_of(run_pairs(discover(tmp_path), device="cpu", check_only=True, stressed=False), "short")
    assert "its reference must return a list of 2: each rank's answer" in reason_of(row)
