"""How each two GPUs of this machine are connected, as CUDA and NVML tell."""

from itertools import combinations
from typing import Any

import pynvml
import torch

from common.machine.device import nvml_handle, told

WAYS = {  # what two GPUs have in common that is nearest to them
    pynvml.NVML_TOPOLOGY_INTERNAL: "PCIe, on the same board",
    pynvml.NVML_TOPOLOGY_SINGLE: "PCIe, over a single switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PCIe, over several switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "PCIe, over a host bridge",
    pynvml.NVML_TOPOLOGY_NODE: "PCIe, over the host bridges of a NUMA node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "PCIe, over the link between NUMA nodes",
}


def links() -> list[dict[str, Any]]:
    """Of each two GPUs that CUDA sees, by its numbers; none where there is a single one."""
    uuids = (torch.cuda.get_device_properties(index).uuid for index in range(torch.cuda.device_count()))
    handles = [nvml_handle(f"GPU-{uuid}") for uuid in uuids]
    found, source = [], "cudaDeviceCanAccessPeer; NVML's peer-to-peer status and topology"
    for one, other in combinations(range(len(handles)), 2):
        peer, link = torch.cuda.can_device_access_peer(one, other), _link(handles[one], handles[other])
        found.append({"between": [one, other], "peer_access": peer, "link": link, "source": source})
    return found


def _link(one: Any, other: Any) -> str:
    if told(pynvml.nvmlDeviceGetP2PStatus, one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK) == pynvml.NVML_P2P_STATUS_OK:
        count = active_nvlinks(one)
        return f"NVLink, {count} links of each GPU" if count else "NVLink"
    return WAYS.get(told(pynvml.nvmlDeviceGetTopologyCommonAncestor, one, other), "not told by NVML")


def active_nvlinks(handle: Any) -> int | None:
    """Of a GPU, to whatever is at their other end: another GPU or a switch; None where NVML does not tell."""
    states = [told(pynvml.nvmlDeviceGetNvLinkState, handle, link) for link in range(pynvml.NVML_NVLINK_MAX_LINKS)]
    return states.count(pynvml.NVML_FEATURE_ENABLED) if set(states) != {None} else None
