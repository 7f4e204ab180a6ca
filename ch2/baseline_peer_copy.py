"""Copy 256 MiB from one GPU to another through the host's memory: every byte crosses two PCIe links.

Problem: the copy has two steps, and the second begins when the first has ended:

    GPU 0 -> host    256 MiB over PCIe, into pinned memory
    host -> GPU 1    256 MiB over PCIe

Cost: PCIe 5.0 with 16 lanes moves 64 GB/s in each direction (by its standard): 4.2 ms a step, 8.4 ms together.

Predict: `optimized_peer_copy.py` copies directly. Which ratio follows over NVLink with 450 GB/s in each direction?
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
