"""What a machine tells of itself, where it tells it in more than one way."""

import re
import warnings
from types import SimpleNamespace

import pynvml
import pytest

from common.machine import device, throttling
from common.pairs.pair import ROOT

GPU = {"kind": "cuda", "uuid": "GPU-1"}
HOT = "thermal slowdown (hardware)"


@pytest.fixture
def driver(monkeypatch):
    """A driver whose counters, and the flags of the moment, are what a test says."""
    found = SimpleNamespace(counted={}, flags=0)

    def values(handle, fields):
        of = {True: pynvml.NVML_SUCCESS, False: pynvml.NVML_ERROR_NOT_SUPPORTED}
        told = [(of[field in found.counted], SimpleNamespace(ullVal=found.counted.get(field, 0))) for field in fields]
        return [SimpleNamespace(nvmlReturn=status, value=value) for status, value in told]

    monkeypatch.setattr(throttling, "nvml_handle", lambda uuid: uuid)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetFieldValues", values)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: found.flags)
    return found


def changed(before, after):
    assert before.keys() == after.keys()
    return {name for name in after if after[name] != before[name]}


def test_a_slowdown_that_has_come_and_gone_has_been_counted(driver):
    hot = pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN
    driver.counted = dict.fromkeys(throttling.SLOWDOWN_FIELDS, 5)
    before = throttling.slowdowns(GPU)
    assert changed(before, throttling.slowdowns(GPU)) == set()
    driver.counted[hot] = 6
    assert changed(before, throttling.slowdowns(GPU)) == {HOT}


def test_where_nothing_is_counted_a_slowdown_in_force_is_seen(driver):
    quiet = throttling.slowdowns(GPU)
    assert changed(quiet, throttling.slowdowns(GPU)) == set()
    driver.flags = 0x40 | 0x04  # a power cap is none
    during = throttling.slowdowns(GPU)
    assert changed(quiet, during) == {HOT}
    assert changed(during, throttling.slowdowns(GPU)) == {HOT}  # in force at both ends
    driver.flags = 0
    assert changed(during, throttling.slowdowns(GPU)) == {HOT}


def test_what_a_gpu_does_not_tell_is_left_out(driver, monkeypatch):
    """As some virtual ones do."""

    def silent(*arguments):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    for query in ("nvmlDeviceGetFieldValues", "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        monkeypatch.setattr(pynvml, query, silent)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", lambda handle, which: 1980)
    assert throttling.clocks_now("GPU-1") == {"sm_mhz": 1980, "memory_mhz": 1980}
    assert changed(throttling.slowdowns(GPU), throttling.slowdowns(GPU)) == set()


def test_a_throttled_core_is_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(throttling, "CORES", tmp_path)
    assert throttling.slowdowns({"kind": "cpu"}) == {}
    for core, count in (("cpu0", "3\n"), ("cpu11", "4\n")):
        (tmp_path / core / "thermal_throttle").mkdir(parents=True)
        (tmp_path / core / "thermal_throttle" / "core_throttle_count").write_text(count)
    assert list(throttling.slowdowns({"kind": "cpu"}).values()) == [7]


def test_without_a_usable_gpu_the_way_out_is_named(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"^device cuda:0: .*a driver older than 580.* --device cpu runs"):
        device.describe("cuda:0")


@pytest.mark.parametrize("text", ["", "cuda:x", "cpu:0", "cuda:99999999999999999999", "meta"])
def test_no_other_device_has_one(text):
    with pytest.raises(ValueError, match="it must be cpu or cuda:N"):
        device.full_device_name(text)


@pytest.fixture
def gpu(monkeypatch):
    """gpu(...): what describe says of a GPU with this driver under this torch, which sees none and may warn."""
    import torch

    def said(runs, built, driver="550.54.15", capability=(9, 0), version="2.13.0", warned="driver is too old"):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: warned and warnings.warn(warned, stacklevel=2))
        monkeypatch.setattr(torch.version, "cuda", built)
        monkeypatch.setattr(torch, "__version__", version)
        monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
        monkeypatch.setattr(pynvml, "nvmlSystemGetDriverVersion", lambda: driver)
        monkeypatch.setattr(pynvml, "nvmlSystemGetCudaDriverVersion", lambda: runs)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCudaComputeCapability", lambda handle: [*capability])
        with (
            warnings.catch_warnings(record=True) as heard,
            pytest.raises(ValueError, match=r"^device cuda:0: ") as error,
        ):
            device.describe("cuda:0")
        assert not heard and "\n" not in str(error.value)
        return str(error.value)

    return said


CUDA_12 = "or torch==2.13.0+cu126 from https://download.pytorch.org/whl/cu126 and cupy-cuda12x instead of cupy-cuda13x"


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cu130"])
def test_a_driver_for_cuda_12_is_named_with_what_to_install(gpu, version):
    said = gpu(12040, "13.0", version=version)
    assert "the NVIDIA driver 550.54.15 is for CUDA 12.4, torch 2.13.0 is for 13.0" in said
    assert "install driver 580 or newer, " in said and CUDA_12 in said and "--device cpu runs" in said


@pytest.mark.parametrize(("runs", "built"), [(13000, "13.0"), (13020, "13.0"), (12040, "12.6"), (12040, None)])
def test_a_driver_that_is_new_enough_is_not_called_old(gpu, runs, built):
    said = gpu(runs, built, warned="")
    assert "sees no CUDA device here (no GPU, a driver older than 580, or a CPU build); " in said


def test_the_readme_names_the_versions_of_the_requirements_for_cuda_12_too():
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    command = next(line for line in (ROOT / "README.md").read_text().splitlines() if "cupy-cuda12x==" in line)
    named = dict(re.findall(r"([\w-]+)==([\d.]+)", command))
    assert named == {"torch": pins["torch"], "cupy-cuda12x": pins["cupy-cuda13x"]} and device.CUDA_12 in command


@pytest.mark.parametrize(
    ("name", "processes", "had", "threads"),
    [("cpu", 1, 31, 31), ("cpu", 8, 31, 3), ("cuda:0", 1, 31, 4), ("cuda:3", 8, 31, 3), ("cuda:0", 64, 31, 1),
     ("cuda:0", 1, 1, 1)],
)  # fmt: skip
def test_beside_a_gpu_a_process_has_few_cpu_threads(monkeypatch, name, processes, had, threads):
    found = []
    monkeypatch.setattr(device, "cpu_threads", lambda: 31)
    monkeypatch.setattr("torch.get_num_threads", lambda: had)
    monkeypatch.setattr("torch.set_num_threads", found.append)
    monkeypatch.setattr(device, "threadpool_limits", found.append)
    for entry in ("init", "set_device"):
        monkeypatch.setattr(f"torch.cuda.{entry}", lambda *_: None)
    monkeypatch.setattr(device, "cupy_on", lambda _: None)
    device.use_device(name, processes)
    assert found == [threads, threads]
