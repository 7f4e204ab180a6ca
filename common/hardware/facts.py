"""Facts that a machine reports, each with its source, and the links between its GPUs. Unknown facts are left out."""

import platform
from itertools import combinations
from typing import Any

import psutil
import pynvml
import torch

from common.machine.device import cpu_caches
from common.machine.throttling import CORES, nvml_handle, query_nvml

PROP = "cudaDeviceProp."
GUIDE = "CUDA C++ Programming Guide, by compute capability"
# per SM, L1 and shared memory together: no attribute reports it
UNIFIED_KIB = {(7, 5): 96, (8, 0): 192, (8, 6): 128, (8, 7): 192, (8, 9): 128, (9, 0): 256, (10, 0): 256, (12, 0): 128}
UNIFIED_BYTES = {key: kib << 10 for key, kib in UNIFIED_KIB.items()}

Fact = dict[str, Any]  # name, value, unit, source
WAYS = {  # the nearest common point of two GPUs
    pynvml.NVML_TOPOLOGY_INTERNAL: "PCIe, on the same board",
    pynvml.NVML_TOPOLOGY_SINGLE: "PCIe, over a single switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PCIe, over several switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PCIe, over a host bridge",
    pynvml.NVML_TOPOLOGY_NODE: "PCIe, over the host bridges of a NUMA node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "PCIe, over the link between NUMA nodes",
}


def _facts(*facts: tuple[str, Any, str, str]) -> list[Fact]:
    """Those with a known value."""
    return [dict(zip(("name", "value", "unit", "source"), fact, strict=True)) for fact in facts if fact[1] is not None]


def gpu_facts(device: str, info: dict[str, Any]) -> list[Fact]:
    """Facts of a GPU: bytes, MHz, counts."""
    props: Any = torch.cuda.get_device_properties(device)
    handle = nvml_handle(info["uuid"])
    warps = props.max_threads_per_multi_processor // props.warp_size
    return _facts(
        ("compute capability", f"{props.major}.{props.minor}", "", f"{PROP}major, minor"),
        ("streaming multiprocessors", props.multi_processor_count, "", f"{PROP}multiProcessorCount"),
        ("highest SM clock", info["max_sm_mhz"], "MHz", "NVML"),
        ("warps per SM", warps, "", f"{PROP}maxThreadsPerMultiProcessor / warpSize"),
        ("registers per SM, of 32 bits", props.regs_per_multiprocessor, "", f"{PROP}regsPerMultiprocessor"),
        ("L1 and shared memory per SM", UNIFIED_BYTES.get((props.major, props.minor)), "B", GUIDE),
        ("shared memory per SM", props.shared_memory_per_multiprocessor, "B", f"{PROP}sharedMemPerMultiprocessor"),
        ("shared memory per block, at most", props.shared_memory_per_block_optin, "B", f"{PROP}sharedMemPerBlockOptin"),
        ("L2", props.L2_cache_size, "B", f"{PROP}l2CacheSize"),
        ("memory", props.total_memory, "B", f"{PROP}totalGlobalMem"),
        ("highest memory clock", info["max_memory_mhz"], "MHz", "NVML"),
        ("memory bus", query_nvml(pynvml.nvmlDeviceGetMemoryBusWidth, handle), "bit", "NVML"),
        ("PCIe generation, at present", query_nvml(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, handle), "", "NVML"),
        ("PCIe lanes, at present", query_nvml(pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle), "", "NVML"),
        ("NVLinks, active", active_nvlinks(handle), "", "NVML"),
        ("driver", info["driver"], "", "NVML"),
        ("host", info["host"], "", "/proc/cpuinfo"),
    )


def cpu_facts(info: dict[str, Any]) -> list[Fact]:
    """Facts of a CPU: bytes, counts. Caches, if Linux reports them: of the first core, with the cores that share it."""
    caches = [
        (f"{name}{'' if sharing == 1 else f', shared by {sharing} cores'}", size, "B", f"{CORES}/cpu0/cache")
        for name, (size, sharing) in cpu_caches().items()
    ]
    return _facts(
        ("architecture", platform.machine(), "", "platform"),
        ("cores", info["cores"], "", "the operating system"),
        ("threads that are used here", info["threads"], "", "one core is left to the rest of the machine"),
        *caches,
        ("memory", psutil.virtual_memory().total, "B", "the operating system"),
    )


def links() -> list[dict[str, Any]]:
    """The links between each two GPUs that CUDA sees, as CUDA and NVML report them; empty with a single GPU."""
    uuids = (torch.cuda.get_device_properties(index).uuid for index in range(torch.cuda.device_count()))
    handles = [nvml_handle(f"GPU-{uuid}") for uuid in uuids]
    source = "cudaDeviceCanAccessPeer; NVML's peer-to-peer status and topology"
    pairs = []
    for one, other in combinations(range(len(handles)), 2):
        peer, link = torch.cuda.can_device_access_peer(one, other), _link(handles[one], handles[other])
        pairs.append({"between": [one, other], "peer_access": peer, "link": link, "source": source})
    return pairs


def _link(one: Any, other: Any) -> str:
    status = query_nvml(pynvml.nvmlDeviceGetP2PStatus, one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    if status == pynvml.NVML_P2P_STATUS_OK:
        count = active_nvlinks(one)
        return f"NVLink, {count} links of each GPU" if count else "NVLink"
    return WAYS.get(query_nvml(pynvml.nvmlDeviceGetTopologyCommonAncestor, one, other), "not reported by NVML")


def active_nvlinks(handle: Any) -> int | None:
    """Active NVLinks of a GPU, to another GPU or a switch; None if NVML does not report them."""
    states = [query_nvml(pynvml.nvmlDeviceGetNvLinkState, handle, link) for link in range(pynvml.NVML_NVLINK_MAX_LINKS)]
    return states.count(pynvml.NVML_FEATURE_ENABLED) if set(states) != {None} else None
