"""What a machine tells of itself, where it tells it in more than one way."""

from types import SimpleNamespace

import pynvml
import pytest

from common.machine import device, state

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

    monkeypatch.setattr(state, "nvml_handle", lambda uuid: uuid)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetFieldValues", values)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: found.flags)
    return found


def changed(before, after):
    assert before.keys() == after.keys()
    return {name for name in after if after[name] != before[name]}


def test_a_slowdown_that_has_come_and_gone_has_been_counted(driver):
    hot = pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN
    driver.counted = dict.fromkeys(state.SLOWDOWN_FIELDS, 5)
    before = state.slowdowns(GPU)
    assert changed(before, state.slowdowns(GPU)) == set()
    driver.counted[hot] = 6
    assert changed(before, state.slowdowns(GPU)) == {HOT}


def test_where_nothing_is_counted_a_slowdown_in_force_is_seen(driver):
    quiet = state.slowdowns(GPU)
    assert changed(quiet, state.slowdowns(GPU)) == set()
    driver.flags = 0x40 | 0x04  # a power cap is none
    during = state.slowdowns(GPU)
    assert changed(quiet, during) == {HOT}
    assert changed(during, state.slowdowns(GPU)) == {HOT}  # in force at both ends
    driver.flags = 0
    assert changed(during, state.slowdowns(GPU)) == {HOT}


def test_what_a_gpu_does_not_tell_is_left_out(driver, monkeypatch):
    """As some virtual ones do."""

    def silent(*arguments):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    for query in ("nvmlDeviceGetFieldValues", "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        monkeypatch.setattr(pynvml, query, silent)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", lambda handle, which: 1980)
    assert state.clocks_now("GPU-1") == {"sm_mhz": 1980, "memory_mhz": 1980}
    assert changed(state.slowdowns(GPU), state.slowdowns(GPU)) == set()


def test_a_throttled_core_is_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(state, "CORES", tmp_path)
    assert state.slowdowns({"kind": "cpu"}) == {}
    for core, count in (("cpu0", "3\n"), ("cpu11", "4\n")):
        (tmp_path / core / "thermal_throttle").mkdir(parents=True)
        (tmp_path / core / "thermal_throttle" / "core_throttle_count").write_text(count)
    assert list(state.slowdowns({"kind": "cpu"}).values()) == [7]


def test_without_a_usable_gpu_the_way_out_is_named(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"^device cuda:0: .*a driver older than 580.* --device cpu runs"):
        device.describe("cuda:0")


@pytest.mark.parametrize(("text", "name"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:3", "cuda:3")])
def test_a_device_has_one_name(text, name):
    assert device.device_named(text) == name


@pytest.mark.parametrize("text", ["", "banana", "cuda:", "cuda:x", "cpu:0", "cuda:99999999999999999999", "meta"])
def test_no_other_device_has_one(text):
    with pytest.raises(ValueError, match="it must be cpu or cuda:N"):
        device.device_named(text)
