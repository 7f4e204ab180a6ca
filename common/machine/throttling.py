"""What this machine does now: clocks, temperature, involuntary slowdowns. NVML answers without a CUDA context."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pynvml

CORES = Path("/sys/devices/system/cpu")  # in Linux
# NVML field -> (throttle flag, name). Not here: the power cap, which is normal under large matrix products
SLOWDOWN_FIELDS = {
    pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN: (0x20, "thermal slowdown (software)"),
    pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN: (0x40, "thermal slowdown (hardware)"),
    pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN: (0x80, "power brake"),
}


@cache
def nvml_handle(uuid: str) -> Any:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByUUID(uuid)


def slowdowns(info: dict[str, Any]) -> dict[str, int]:
    """Counters by name of involuntary slowdowns: a counter that has changed shows a slowdown in between.

    A GPU's driver counts their time. If it does not, the counter is the current time while a slowdown is in force. On a
    CPU Linux counts how often a core was throttled for heat. Elsewhere there is no counter.
    """
    if info["kind"] == "cpu":
        counts = [int(path.read_text()) for path in CORES.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
        return {"thermal throttling of a core": sum(counts)} if counts else {}
    handle = nvml_handle(info["uuid"])
    flags = query_nvml(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    values = query_nvml(pynvml.nvmlDeviceGetFieldValues, handle, list(SLOWDOWN_FIELDS)) or [None] * len(SLOWDOWN_FIELDS)
    counters: dict[str, int] = {}
    for (flag, name), value in zip(SLOWDOWN_FIELDS.values(), values, strict=True):
        is_counted = value is not None and value.nvmlReturn == pynvml.NVML_SUCCESS
        counters[name] = value.value.ullVal if is_counted else (flags & flag) and time.monotonic_ns()
    return counters


def clocks_now(uuid: str) -> dict[str, int]:
    """SM and memory clock (MHz), temperature (C) and throttle flags of a GPU, as far as it reports them."""
    handle = nvml_handle(uuid)
    readings = {
        "sm_mhz": query_nvml(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "memory_mhz": query_nvml(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM),
        "celsius": query_nvml(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
        "throttle_flags": query_nvml(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
    }
    return {name: value for name, value in readings.items() if value is not None}


def query_nvml(query: Callable[..., Any], *arguments: Any) -> Any:
    """NVML's answer; None if this GPU (a virtual one, for example) does not support the query."""
    with suppress(pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NoPermission):
        return query(*arguments)
    return None
