"""The measured datasheet: its file and its cache, what is read off its curves, kernels that do what they count."""

import json
import re
import sys
from dataclasses import asdict
from types import SimpleNamespace

import msgspec
import numpy as np
import pynvml
import pytest
import torch
from msgspec.structs import replace
from samples import refused

from common.hardware import cpu_sheet, facts, gpu_sheet, sheet_text
from common.hardware import sheet as sheets
from common.hardware.levels import levels, working_sets
from common.machine import limits
from common.machine.device import datasheet, describe, versions
from common.pairs.pair import ROOT, load
from common.show.console import make_console
from common.xray.capture import CudaLaunch
from common.xray.compilers import compile_for
from common.xray.occupancy import MACHINES
from common.xray.sass import dissect

MIB = 1 << 20
GPUS = {name: MACHINES[name] for name in ("sm_75", "sm_80", "sm_90", "sm_100")}
SETS = working_sets(16 << 10, 1 << 30, gpu_sheet.TILE)
L1, L2 = 228 << 10, 50 * MIB


def stairs(size, *steps):
    return float(steps[0] if size <= L1 else steps[1] if size <= L2 else steps[2])


def recorded_sheet():
    """A made-up GPU whose curves have clean steps."""
    bandwidth = {
        kind: [[size, stairs(size, 32e12, 8e12, 4e12) / part] for size in SETS if size % (part * gpu_sheet.TILE) == 0]
        for kind, part in (("read", 1), ("write", 1), ("copy", 2))
    }
    latency = [[size, stairs(size, 33, 250, 700), stairs(size, 33, 250, 700) / 2e9] for size in SETS]
    device = {"kind": "cuda", "name": "A made-up GPU", "uuid": "GPU-1", "driver": "580.1", "gpus": 2}
    environment = {"device": device, "versions": {"torch": "2.11.0"}, "date": "2026-11-21T10:00:00+00:00"}
    told = facts._facts(
        ("streaming multiprocessors", 132, "", "cudaDeviceProp"), ("memory bus", 6144, "bit", "NVML"),
        ("L1 and shared memory per SM", 256 << 10, "B", "the guide"), ("L2", L2, "B", "cudaDeviceProp"),
    )  # fmt: skip
    known = {
        "dram_bytes": (4.2e12, 4.8e12, "a copy", "a datasheet"), "fp8_flops": (1.3e15, None, "a product", ""),
        "link_bytes": (3.9e11, 4.5e11, "256 MiB to cuda:1", "a datasheet"),
    }  # fmt: skip
    link = {"between": [0, 1], "peer_access": True, "link": "NVLink, 18 links of each GPU", "source": "NVML"}
    parts = {
        "schema": 1, "environment": environment, "facts": told, "bandwidth": bandwidth, "latency": latency,
        "limits": {key: asdict(limits.Limit(*limit)) for key, limit in known.items()},
        "levels": levels({"L1": L1, "L2": L2}, bandwidth, latency), "links": [link],
        "transfers": {"host to device, pinned": [[4096, 4e8], [16384, 1.5e9]], "cuda:0 to cuda:1": [[4096, 2e8]]},
    }  # fmt: skip
    return msgspec.convert(parts, sheets.Sheet)


# The file


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("", "not JSON"), ("[1, 2]", "not a machine's datasheet"), ('{"schema": 2}', "written by a newer version"),
        ({"latency": [[1, 2]]}, r"latency\[0\]"), ({"bandwidth": {"read": [[1, 0]]}}, r"`int` >= 1 - at `.\.bandwidth"),
        ({"bandwidth": {}}, "KeyError: 'read'"), ({"limits": {"dram_bytes": {"measured": 1}}}, "field `datasheet`"),
        ({"levels": {"L1": {}}}, "KeyError: 'bytes'"), ({"facts": []}, "facts"), ({"more": 1}, "more"),
        (None, "cannot be read"),
    ],
)  # fmt: skip
def test_a_foreign_or_broken_file_is_one_line(change, says, tmp_path):
    if change is not None:
        text = change if isinstance(change, str) else json.dumps({**msgspec.to_builtins(recorded_sheet()), **change})
        (tmp_path / "sheet.json").write_text(text)
    with refused(says):
        sheets.FORMAT.load(tmp_path / "sheet.json")


def test_the_newest_gpu_is_what_was_recorded_as_it_was(tmp_path):
    assert sheets.recorded_sheet(tmp_path) is None
    made = recorded_sheet()

    def sheet(date, **device):
        described = {**made.environment["device"], **device}
        return replace(made, environment={**made.environment, "date": date, "device": described})

    newer, on_cpu = sheet("2026-11-22T10:00:00+00:00", name="Another GPU"), sheet("2026-11-23", **describe("cpu"))
    paths = [sheets.keep(each, tmp_path) for each in (newer, made, on_cpu)]
    assert paths[0] == tmp_path / "another_gpu" / "hardware.json"
    assert sheets.recorded_sheet(tmp_path) == newer


# The cache


@pytest.fixture
def measured(monkeypatch):
    """Which devices were measured; the machine is a made-up GPU, whose description the test may change."""
    found = SimpleNamespace(devices=[], info=dict(recorded_sheet().environment["device"]), torch="2.11.0")

    def measure(device, on_progress):
        found.devices.append(device)
        environment = {"device": dict(found.info), "versions": {"torch": found.torch}, "date": "2026-11-21"}
        return replace(recorded_sheet(), environment=environment)

    monkeypatch.setattr(sheets, "survey_apart", lambda device, with_limits: (found.info, {}))
    monkeypatch.setattr(sheets, "versions", lambda: {"torch": found.torch})
    monkeypatch.setattr(sheets, "measure_in_child", measure)
    return found


def test_a_machine_is_measured_once(measured, tmp_path):
    first = sheets.cached_or_measured("cuda:0", folder=tmp_path)
    assert sheets.cached_or_measured("cuda:0", folder=tmp_path) == first
    assert measured.devices == ["cuda:0"]
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")] == ["a_made_up_gpu/580.1_GPU-1.json"]


@pytest.mark.parametrize("change", ["fresh", "driver", "uuid", "torch", "broken"])
def test_another_machine_or_a_broken_cache_is_measured_anew(change, measured, tmp_path):
    sheets.cached_or_measured("cuda:0", folder=tmp_path)
    if change == "broken":
        sheets.cache_file(measured.info, tmp_path).write_text("{")
    elif change == "torch":
        measured.torch = "2.12.0"
    elif change != "fresh":
        measured.info[change] = "another"
    for fresh in (change == "fresh", False):
        sheets.cached_or_measured("cuda:0", fresh=fresh, folder=tmp_path)
        assert len(measured.devices) == 2


# What is read off the curves


def test_a_level_is_read_where_a_set_surely_lies_in_it():
    found = recorded_sheet().levels
    assert {name: level["bytes"] for name, level in found.items()} == {"L1": 96 << 10, "L2": 24 * MIB, "DRAM": 1 << 30}
    assert [level["read"] for level in found.values()] == [32e12, 8e12, 4e12]
    assert [level["cycles"] for level in found.values()] == [33, 250, 700]
    assert (found["L2"]["seconds"], found["DRAM"]["copy"]) == (pytest.approx(125e-9), 2e12)


def test_dram_reaches_what_the_limits_reached():
    sheet, reached = recorded_sheet(), {"dram_read_bytes": 3e12, "dram_write_bytes": 4.5e12, "dram_bytes": 4.2e12}
    limits_ = {key: {"measured": rate} for key, rate in reached.items()}
    found = gpu_sheet.gpu_levels({"L1": L1, "L2": L2}, sheet.bandwidth, sheet.latency, limits_)
    assert [found["DRAM"][kind] for kind in ("read", "write", "copy")] == [4e12, 4.5e12, 4.2e12]
    assert set(found["L1"]) == {"bytes", "read", "cycles", "seconds"}
    assert found["L2"] == sheet.levels["L2"]


# Facts


def test_caches_are_found_with_how_many_cores_share_them(tmp_path):
    caches = ("Data 1 48K 0", "Instruction 1 32K 0", "Unified 2 2M 0,64", "Unified 3 96M 0-7,64-71")
    for index, told in enumerate(caches):
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in zip(("type", "level", "size", "shared_cpu_list"), told.split(), strict=True):
            (folder / name).write_text(f"{text}\n")
    assert facts.cpu_caches(tmp_path) == {"L1d": (48 << 10, 1), "L2": (2 * MIB, 2), "L3": (96 * MIB, 16)}
    assert facts.cpu_caches(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("nvlink", "ancestor", "says"),
    [
        ("OK", pynvml.NVML_TOPOLOGY_SYSTEM, "NVLink, 2 links of each GPU"),
        ("NOT_SUPPORTED", pynvml.NVML_TOPOLOGY_HOSTBRIDGE, "PCIe, over a host bridge"),
        ("NOT_SUPPORTED", 12345, "not reported by NVML"),
    ],
)
def test_a_link_is_named_from_nvml(nvlink, ancestor, says, monkeypatch):
    def state(handle, link):
        if link > 3:
            raise pynvml.NVMLError_InvalidArgument
        return link < 2

    status = getattr(pynvml, f"NVML_P2P_STATUS_{nvlink}")
    told = {"P2PStatus": lambda *_: status, "TopologyCommonAncestor": lambda *_: ancestor, "NvLinkState": state}
    for what, how in told.items():
        monkeypatch.setattr(pynvml, f"nvmlDeviceGet{what}", how)
    assert facts._link("one", "other") == says


# Limits


def test_a_links_datasheet_counts_one_direction():
    """Vendors give both together."""
    both = {"NVIDIA A100-SXM4-80GB": 600e9, "NVIDIA H100 80GB HBM3": 900e9, "NVIDIA H200": 900e9, "NVIDIA B200": 1.8e12}
    for name, of_both in both.items():
        peaks, source = datasheet(name)
        assert peaks["link_bytes"] == of_both / 2 and "per direction" in source


# Kernels


def anatomy(name, machine):
    threads = 1 if name == "chase" else gpu_sheet.THREADS
    launch = CudaLaunch(name, gpu_sheet.KERNELS.read_text(), gpu_sheet.OPTIONS, threads, 0)
    return dissect(compile_for(launch, machine), machine)


@pytest.mark.parametrize(
    "architecture", [pytest.param(each, marks=[pytest.mark.rest] * (each != "sm_90")) for each in GPUS]
)
def test_the_kernels_keep_enough_bytes_on_the_way(architecture):
    pytest.importorskip("cuda.bindings.nvrtc")
    machine = GPUS[architecture]
    for name, wide in {"read_set": ["loads"], "write_set": ["stores"], "copy_set": ["loads", "stores"]}.items():
        found = anatomy(name, machine)
        assert (found.spills, found.occupancy.warps) == (0, machine.warps)  # as many blocks an SM as are launched
        assert all(found.counts[f"global {what}", 128] == gpu_sheet.UNROLL for what in wide)
    chase = anatomy("chase", machine)
    assert chase.spills == 0 and chase.counts["global loads", 64] >= gpu_sheet.CHASES


def visits(tiles, mixed, blocks, steps):
    """How often each tile is walked over, by the kernels' arithmetic."""
    block = np.arange(blocks)[:, None]
    first, width = (block * tiles // blocks, 6 * block + 1) if mixed else (block, blocks)
    return np.bincount(((first + width * np.arange(steps)) % tiles).ravel(), minlength=tiles)


@pytest.mark.parametrize("machine", GPUS.values(), ids=GPUS)
def test_the_blocks_together_walk_the_whole_set(machine):
    probe = object.__new__(gpu_sheet.Probe)
    probe.sms, probe.l2_bytes = machine.sms, machine.l2_bytes
    probe.blocks = machine.sms * machine.warps * 32 // gpu_sheet.THREADS
    assert probe.blocks < 1 << 14
    for size in working_sets(gpu_sheet.SMALLEST, 512 * MIB, gpu_sheet.TILE):
        mixed = size <= probe.l2_bytes
        seen = visits(size // gpu_sheet.TILE, mixed, probe.blocks, probe.steps(size))
        assert seen.min() >= 1
        assert seen.max() <= (2 * seen.mean() if mixed else 2 * seen.min() + 1)


def test_the_chain_is_one_cycle_through_all_lines():
    after, seen = gpu_sheet.cycle(torch.randperm(1000)).tolist(), [0]
    for _ in range(1000):
        seen.append(after[seen[-1]])
    assert (seen[-1], len(set(seen))) == (0, 1000)


# On a CPU


def test_a_cpu_is_measured(monkeypatch):
    for name in ("MOVED", "LARGEST"):
        monkeypatch.setattr(cpu_sheet, name, 1 << 20)
    limit = limits.Limit(1e10, None, "a copy", "")
    monkeypatch.setattr(cpu_sheet, "measure_limits", lambda device: {"dram_bytes": limit})
    found = cpu_sheet.measure_cpu({**describe("cpu"), "cache_bytes": 1 << 17}, sheets.no_progress)
    environment = {"device": describe("cpu"), "versions": versions(), "date": "2026-11-21"}
    sheet = msgspec.convert({"schema": 1, "environment": environment, **found}, sheets.Sheet)
    assert [size for size, _ in sheet.bandwidth["read"]] == working_sets(8 << 10, 1 << 20)
    assert list(sheet.bandwidth) == ["read", "copy", "scale", "add", "triad"]
    assert all(1e5 < found < 1e14 for points in sheet.bandwidth.values() for _, found in points)
    assert sheet.bandwidth["triad"][0][0] == 1.5 * sheet.bandwidth["copy"][0][0]
    assert sheet.latency == sheet.links == [] and sheet.transfers == {}


# What is shown


def printed(sheet, capsys):
    sheet_text.print_sheet(sheet, make_console())
    return capsys.readouterr().out


def test_the_tables_show_what_the_sheet_holds(capsys):
    out = printed(recorded_sheet(), capsys)
    for row in (
        r"L2 +50 MiB +cudaDeviceProp", r"L1 +96 KiB +32000 +32000 +16000 +33 +16.5", r"fp8_flops +1300 TFLOP/s",
        r"DRAM +1 GiB +4000 +4000 +2000 +700 +350", r"link_bytes +390 GB/s +450 GB/s", r"16 KiB +1.5\b",
        r"0 - 1 +NVLink, 18 links of each GPU +yes",
    ):  # fmt: skip
        assert re.search(row, out), row


# The script


MISTAKES = {"--device tpu": "must be cpu or cuda:N", "--plot nowhere": "nowhere: no such folder", "--x": "--x"}


@pytest.mark.parametrize("arguments", [*MISTAKES, f"--plot {ROOT}/README.md"])
def test_bad_input_is_one_line(arguments, measured, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["hardware_info.py", *arguments.split()])
    assert load(ROOT / "ch2/hardware_info.py").main() == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), measured.devices) == ("", 1, [])
    assert MISTAKES.get(arguments, "README.md: a file") in err


def test_the_script_prints_saves_and_records(measured, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["hardware_info.py", "--device", "cuda:0", "--record", "--plot", str(tmp_path)])
    monkeypatch.setattr(sheets, "CACHE", tmp_path / "cache")
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path / "recorded")
    assert load(ROOT / "ch2/hardware_info.py").main() == 0
    assert "streaming multiprocessors" in capsys.readouterr().out
    assert {path.name for path in tmp_path.glob("*.png")} == {"bandwidth.png", "latency.png", "transfers.png"}
    assert sheets.recorded_sheet().environment["device"]["name"] == "A made-up GPU"


# On a GPU


@pytest.fixture(scope="module")
def probe():
    return gpu_sheet.Probe("cuda:0")


@pytest.mark.gpu
@pytest.mark.parametrize("size", [16 << 10, 96 << 10, 3 * MIB // 2, 12 * MIB, 384 * MIB])
def test_every_byte_is_read(size, probe):
    words = probe.buffer[:size].view(torch.int32)
    words.random_(-(2**31), 2**31 - 1)
    probe.walk("read", size)
    tiles = size // gpu_sheet.TILE
    sums = words.view(tiles, -1).sum(1, dtype=torch.int64).cpu().numpy()
    expected = int((visits(tiles, size <= probe.l2_bytes, probe.blocks, probe.steps(size)) * sums).sum())
    assert (int(probe.sums.sum(dtype=torch.int64)) - expected) % 2**32 == 0


@pytest.mark.gpu
@pytest.mark.parametrize("size", [32 << 10, 12 * MIB, 384 * MIB])
def test_every_byte_is_written_and_copied_and_no_other(size, probe):
    probe.buffer.zero_()
    probe.walk("write", size)
    assert bool((probe.buffer[:size].view(torch.int32) == 1).all())
    assert int(probe.buffer[size:].max()) == 0
    version = size // 2
    probe.buffer[:version].view(torch.int32).random_()
    kept = probe.buffer[:version].clone()
    probe.walk("copy", size)
    assert torch.equal(probe.buffer[version:size], kept) and torch.equal(probe.buffer[:version], kept)
    assert int(probe.buffer[size:].max()) == 0


@pytest.mark.gpu
@pytest.mark.alone
def test_a_gpus_levels_are_steps():
    sheet = sheets.measure_in_child("cuda:0")
    assert list(sheet.levels) == ["L1", "L2", "DRAM"]
    first, second, dram = sheet.levels.values()
    assert first["read"] > 1.5 * second["read"] > 1.5 * dram["read"]
    assert first["cycles"] < second["cycles"] < dram["cycles"]
    assert all(2e8 < level["cycles"] / level["seconds"] < 4e9 for level in sheet.levels.values())  # the SM's clock
    for kind, key in {"read": "dram_read_bytes", "write": "dram_write_bytes", "copy": "dram_bytes"}.items():
        assert dram[kind] == pytest.approx(sheet.limits[key]["measured"], rel=0.1)
        assert sheet.bandwidth[kind][-1][1] == pytest.approx(sheet.limits[key]["measured"], rel=0.15)
    assert {size for points in sheet.transfers.values() for size, _ in points} == set(gpu_sheet.TRANSFERS)
    count = torch.cuda.device_count()
    assert (len(sheet.links), "link_bytes" in sheet.limits) == (count * (count - 1) // 2, count > 1)
    assert ("fp8_flops" in sheet.limits) == (torch.cuda.get_device_capability() >= (8, 9))
