"""Copy 64 MiB from the host to the device out of pageable memory: the driver copies every byte twice.

Problem: the GPU's copy engine reads physical addresses. The operating system may move pageable memory or swap it out.
So a CPU core first copies it, piece by piece, into a small pinned buffer of the driver (the staging buffer):

    pageable   x -> CPU core -> staging buffer -> PCIe -> device     the core's copy sets the pace
    pinned     x -----------------------------> PCIe -> device       the link sets the pace

Cost: each byte is copied twice. A PCIe 5.0 x16 link carries up to 64 GB/s in each direction (its specification). One
CPU core copies perhaps 5 to 15 GB/s.

Predict: suppose the core copies 10 GB/s and the link 64 GB/s. How many times faster is `optimized_pinned_memory.py`?
"""

import torch

CLOCK = "wall"  # the CPU's copying is part of the lesson
DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/long": {"n": 999_999},  # longer: a copy that nobody waits for has not ended so soon
    "count": {"n": 262_144},
    "default": {"n": 16_777_216},  # 64 MiB of float32
}


def inputs(n=16_777_216, device="cuda"):
    x = torch.randn(n, device=device).cpu()  # drawn on the device: a CPU takes longer
    return {"x": x, "out": torch.empty(n, device=device)}


def cost(x, out):
    return {"h2d_bytes": x.nbytes}


def run(x, out):
    return out.copy_(x)
