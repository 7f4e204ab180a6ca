"""Copy 256 MiB from one GPU to another through the host's memory: every byte crosses two PCIe links and the CPU's DRAM.

    GPU 0 -> host    256 MiB over PCIe, into pinned memory
    host -> GPU 1    256 MiB over PCIe, once the first copy has ended

Each takes 256 MiB over the link's bandwidth (`python ch2/hardware_info.py` measures it), one after the other.

Predict before you measure: `optimized_peer_copy.py` names the two GPUs and lets them talk. Over which wires does that
go in your machine (`nvidia-smi topo -m`)? What ratio follows from their bandwidths?
"""

import torch

CLOCK = "wall"  # the copy ends on another GPU than it began
DEVICE = "cuda"
REQUIRES = {"gpus": 2}
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/tail": {"n": 100_003},
    "default": {"n": 67_108_864},  # 256 MiB of float32
}


def inputs(n=67_108_864, device="cuda"):
    x = torch.randn(n, device=device)
    other = (x.device.index + 1) % torch.cuda.device_count()
    return {"x": x, "out": torch.empty_like(x, device=f"cuda:{other}")}


def cost(x, out):
    return {"link_bytes": x.nbytes}


def setup(x, out):
    return {"host": torch.empty(x.shape, pin_memory=True)}


def run(x, out, host):
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize(x.device)
    out.copy_(host, non_blocking=True)
    torch.cuda.synchronize(out.device)
    return out
