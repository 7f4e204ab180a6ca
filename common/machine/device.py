"""This machine: its description and its datasheet. `has_gpu` asks NVML alone; the device's functions import torch."""

import json
import os
import platform
import re
import sys
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pynvml
from threadpoolctl import threadpool_limits

from common.machine.throttling import CORES, nvml_handle

DATASHEETS = Path(__file__).with_name("datasheets.json")
UNITS = {"K": 1 << 10, "M": 1 << 20}  # units of cache sizes there
PACKAGES = ("torch", "triton", "cupy-cuda13x", "cupy-cuda12x", "numpy")
LEAST_DRIVER = {12: 525, 13: 580}  # by major version of CUDA; source: NVIDIA's CUDA Compatibility, minor versions
CUDA_12 = "cu126"  # torch's only build for CUDA 12; source: its RELEASE.md, 2.12 to 2.14
GPU_HOST_THREADS = 4  # enough to draw and compare answers, and fewer than the cores that are usually free
TOO_NEW = (10, 0)  # the first compute capability that this build lacks


def has_gpu() -> bool:
    """Whether there is an NVIDIA GPU that CUDA may use. Fast: does not import torch."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "unset").strip() in ("", "-1"):
        return False
    with suppress(pynvml.NVMLError):  # no driver or no device: there is no GPU
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetCount() > 0
    return False


def default_device() -> str:
    return "cuda:0" if has_gpu() else "cpu"


def full_device_name(text: str) -> str:
    """The full name of a device: cpu, or cuda:N (`cuda` stands for cuda:0). Raises ValueError with one line."""
    if not (match := re.fullmatch(r"cpu|cuda(?::(\d{1,4}))?", text)):
        raise ValueError(f"device {text!r}: it must be cpu or cuda:N")
    return text if text == "cpu" else f"cuda:{int(match[1] or 0)}"


def describe(device: str) -> dict[str, Any]:
    """The machine as a record keeps it; bytes, MHz. Raises ValueError with one line if the device cannot be used."""
    import torch

    if full_device_name(device) == "cpu":
        return {
            "kind": "cpu", "name": _cpu_name(), "capability": None, "gpus": 0,
            "cores": os.cpu_count(), "threads": cpu_threads(),
            "cache_bytes": max((size for size, _ in cpu_caches().values()), default=None),
        }  # fmt: skip
    with warnings.catch_warnings(record=True, action="always") as caught:
        is_available = torch.cuda.is_available()
    if not is_available:
        reasons = " ".join(word for warning in caught for word in str(warning.message).split())
        problem = reasons or "no GPU, a driver older than 580, or a CPU build"
        problem = _driver_problem() or f"torch {torch.__version__} sees no CUDA device here ({problem})"
        raise ValueError(f"device {device}: {problem}; --device cpu runs the pairs that need none")
    index = torch.device(device).index or 0
    if index >= torch.cuda.device_count():
        raise ValueError(f"device {device}: this machine has {torch.cuda.device_count()} GPU(s)")
    props = torch.cuda.get_device_properties(index)
    handle = nvml_handle(f"GPU-{props.uuid}")
    return {
        "kind": "cuda", "name": props.name, "capability": [props.major, props.minor],
        "gpus": torch.cuda.device_count(), "sms": props.multi_processor_count,
        "memory_bytes": props.total_memory, "cache_bytes": props.L2_cache_size,
        "uuid": f"GPU-{props.uuid}",
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "max_sm_mhz": pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "max_memory_mhz": pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM),
        "host": _cpu_name(),
    }  # fmt: skip


def _driver_problem() -> str:
    """What to do about a driver that is too old for this torch; an empty text if there is none, or a newer one."""
    import torch

    built_for = torch.version.cuda or ""
    try:
        pynvml.nvmlInit()
        driver, cuda_version = pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlSystemGetCudaDriverVersion()
        capability = pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(0))
    except pynvml.NVMLError:  # no driver, or no GPU
        return ""
    if not built_for or cuda_version // 1000 >= (major := int(built_for.split(".")[0])):
        return ""
    release, _, _ = torch.__version__.partition("+")
    fix = f"install driver {LEAST_DRIVER.get(major, f'for CUDA {built_for}')} or newer"
    supported = f"{cuda_version // 1000}.{cuda_version % 1000 // 10}"
    mismatch = f"the NVIDIA driver {driver} is for CUDA {supported}, torch {release} is for {built_for}"
    if cuda_version // 1000 < 12 or tuple(capability) >= TOO_NEW:
        return f"{mismatch}: {fix}"
    wheel = f"torch=={release}+{CUDA_12} from https://download.pytorch.org/whl/{CUDA_12}"
    return f"{mismatch}: {fix}, or {wheel} and cupy-cuda12x instead of cupy-cuda13x (README.md, `Where it runs`)"


def cupy_on(device: str) -> Any:
    """CuPy, if a pair has imported it and the device is a GPU."""
    return sys.modules.get("cupy") if device.startswith("cuda") else None


def free_bytes(device: str) -> int | None:
    """Free bytes of a device's memory; None if the system does not report them."""
    import torch

    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if sys.platform == "linux" else None


def cpu_threads() -> int:
    """All cores but one, which the rest of the machine keeps busy: a parallel loop is as slow as its slowest thread."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


def use_device(device: str, processes: int = 1) -> None:
    """Make a device current in torch, Triton and CuPy; set the threads of torch and of NumPy's BLAS.

    `processes` share the CPU's threads. Beside a GPU each process gets at most GPU_HOST_THREADS, and no more than it
    had: at the end of a loop all threads wait for the last one, which on a busy machine takes far longer than the loop.
    On a CPU such loops are the timed work.
    """
    import torch

    threads = max(1, cpu_threads() // processes)
    if device.startswith("cuda"):
        threads = min(threads, GPU_HOST_THREADS, torch.get_num_threads())
        torch.cuda.init()
        torch.cuda.set_device(full_device_name(device))
        if cupy := cupy_on(device):
            cupy.cuda.Device(torch.device(device).index or 0).use()
    torch.set_num_threads(threads)
    threadpool_limits(threads)


def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that pairs use."""
    releases = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            releases[package] = version(package)
    return releases


def datasheet(name: str) -> tuple[dict[str, float], str]:
    """(Peak per second by cost key, source) for a GPU's exact name; both are empty without a datasheet."""
    sheet = json.loads(DATASHEETS.read_text(encoding="utf-8")).get(name, {"peaks": {}, "source": ""})
    return sheet["peaks"], sheet["source"]


def _cpu_name() -> str:
    """The processor's own name if Linux reports it, else the platform's."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cpu_caches(cores: Path = CORES) -> dict[str, tuple[int, int]]:
    """Level -> (bytes, cores that share it) of data caches, smallest first; empty if Linux does not report them."""
    caches = {}
    for folder in sorted(cores.glob("cpu0/cache/index*")):
        names = ("type", "level", "size", "shared_cpu_list")
        kind, level, size, sharing = ((folder / name).read_text().strip() for name in names)
        if kind != "Instruction" and size[-1:] in UNITS:
            name = f"L{level}{'d' if kind == 'Data' else ''}"
            caches[name] = (int(size[:-1]) * UNITS[size[-1]], _count_cores(sharing))
    return dict(sorted(caches.items(), key=lambda item: item[1][0]))


def _count_cores(text: str) -> int:
    """How many numbers a list such as 0-3,8 contains."""
    ends = [part.split("-") for part in text.split(",")]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ends)
