"""What is kept of the machine code that a call ran: from a profiler's launches, and from what Triton has loaded."""

import json
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
from samples import pair_result, record

from common.checks.kernel_facts import kernel_facts, kernels_of
from common.pairs.pair import ROOT
from common.record import form
from common.record.record_file import load_record, save_record
from common.xray.capture import launches
from common.xray.compilers import compile_for
from common.xray.occupancy import MACHINES
from common.xray.sass import dissect

pytest.importorskip("triton")
pytestmark = pytest.mark.usefixtures("in_this_process")
H100 = MACHINES["sm_90"]


def launch(name, registers=32, threads=128, shared=0):
    args = {"registers per thread": registers, "block": [threads, 1, 1], "shared memory": shared}
    return {"cat": "kernel", "name": name, "args": args}


@pytest.fixture(scope="module")
def binary():
    (first, *_) = launches(ROOT / "ch3/optimized_softmax_registers.py", {"rows": 64, "columns": 1024}, H100)
    return compile_for(first, H100)


def loaded(binary, registers=32, spilled=0):
    metadata = SimpleNamespace(num_warps=binary.threads // 32, shared=binary.dynamic_shared_bytes)
    asm = {"cubin": binary.cubin}
    return SimpleNamespace(name=binary.name, n_regs=registers, n_spills=spilled, metadata=metadata, asm=asm)


def test_each_kernel_of_a_call_is_counted_with_its_resources():
    facts = kernel_facts([launch("add"), launch("sum", 40, 96, 1024), launch("sum", 40, 96, 1024)], [], [])
    assert facts == [
        {"name": "sum", "launches": 2, "registers": 40, "warps": 3, "shared_bytes": 1024},
        {"name": "add", "launches": 1, "registers": 32, "warps": 4, "shared_bytes": 0},
    ]
    assert msgspec.convert(facts, list[form.Kernel])


def test_spills_and_instructions_come_from_the_binary_that_ran(binary):
    (fact,) = kernel_facts([launch(binary.name, threads=binary.threads)], [], [loaded(binary, spilled=3)])
    anatomy = dissect(binary, H100)
    assert fact["spills"] == 12  # bytes
    assert fact["instructions"]["all"] == anatomy.instructions > 100
    assert fact["instructions"]["global loads 128"] == anatomy.counts["global loads", 128] > 0


def test_another_kernel_of_the_same_name_gives_no_facts(binary):
    at_launch = launch(binary.name, threads=binary.threads)
    (fact,) = kernel_facts([at_launch], [], [loaded(binary, registers=33)])
    assert "spills" not in fact
    (fact,) = kernel_facts([at_launch], [], [loaded(binary), loaded(binary, spilled=1)])  # which of the two ran?
    assert "spills" not in fact
    (fact,) = kernel_facts([at_launch], [loaded(binary, spilled=1)], [loaded(binary), loaded(binary, spilled=1)])
    assert fact["spills"] == 4  # the launcher has started it in this call
    (fact,) = kernel_facts([at_launch], [], [loaded(binary), loaded(binary)])
    assert fact["spills"] == 0


def test_a_trace_is_read_without_its_markers_and_copies():
    events = [launch("spin_kernel(long)"), launch("add"), {"cat": "gpu_memcpy", "name": "Memcpy HtoD"}, {"ph": "M"}]

    def export(path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)

    found = kernels_of(SimpleNamespace(export_chrome_trace=export), [], without="spin_kernel")
    assert [kernel["name"] for kernel in found] == ["add"]


def test_what_the_profiler_leaves_out_or_cannot_write_is_no_fault_of_the_version():
    facts = kernel_facts([{"name": "add"}], [], [])
    assert msgspec.convert(facts, list[form.Kernel]) == [form.Kernel("add")]

    def export(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"traceEvents": [')

    assert kernels_of(SimpleNamespace(export_chrome_trace=export), [], without="") == []


def test_a_record_keeps_them(tmp_path):
    kernels = kernel_facts([launch("x" * 1000)], [], [])
    whole, pair = record(), pair_result()
    arms = {label: replace(arm, kernels=kernels) for label, arm in pair.arms.items()}
    save_record(replace(whole, pairs=[replace(pair, arms=arms)]), tmp_path / "r.json")
    kept = load_record(tmp_path / "r.json").pairs[0].arms["baseline"].kernels
    assert kept[0]["registers"] == 32 and len(kept[0]["name"]) < 100
