"""The connection between each two GPUs of this machine, as reported by CUDA and NVML."""

from itertools import combinations
from typing import Any

import pynvml
import torch

from common.machine.throttling import nvml_handle, query_nvml

WAYS = {  # the nearest common point of two GPUs
    pynvml.NVML_TOPOLOGY_INTERNAL: "PCIe, on the same board",
    pynvml.NVML_TOPOLOGY_SINGLE: "PCIe, over a single switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PCIe, over several switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PCIe, over a host bridge",
    pynvml.NVML_TOPOLOGY_NODE: "PCIe, over the host bridges of a NUMA node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "PCIe, over the link between NUMA nodes",
}


def links() -> list[dict[str, Any]]:
    """The links between each two GPUs that CUDA sees; empty with a single GPU."""
    uuids = (torch.cuda.get_device_properties(index).uuid for index in range(torch.cuda.device_count()))
    handles = [nvml_handle(f"GPU-{uuid}") for uuid in uuids]
    pairs, source = [], "cudaDeviceCanAccessPeer; NVML's peer-to-peer status and topology"
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
