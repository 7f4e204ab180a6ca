"""Copy 256 MiB from the host to the device out of pageable memory: the driver copies every byte twice.

The GPU's copy engine reads physical addresses. Pageable memory may be moved or swapped out by the operating system,
so the driver first copies it, piece by piece and with a CPU core, into a small pinned buffer of its own:

    pageable   x -> CPU core -> staging buffer -> PCIe -> device     a core's copying sets the pace
    pinned     x ---------------------------------> PCIe -> device     the link sets the pace

Predict before you measure: a PCIe 5.0 x16 link carries up to 64 GB/s in each direction, one CPU core copies some 5 to
15 GB/s. How many times slower than `optimized_pinned_memory.py` is this, and how many ms do 256 MiB take each way?
"""

import torch

CLOCK = "wall"  # the CPU's copying is part of the lesson
DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "count": {"n": 262_144},
    "default": {"n": 67_108_864},  # 256 MiB of float32
}


def inputs(n=67_108_864, device="cuda"):
    x = torch.randn(n, device=device).cpu()  # drawn on the device: a CPU takes longer
    return {"x": x, "out": torch.empty(n, device=device)}


def cost(x, out):
    return {"h2d_bytes": x.nbytes}


def run(x, out):
    return out.copy_(x)
