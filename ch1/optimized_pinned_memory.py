"""Copy 256 MiB from the host to the device out of pinned memory: the copy engine reads it directly, every byte once.

Pinned (page-locked) memory stays at its physical address, so the GPU's copy engine can be given that address and
needs neither the CPU nor a staging buffer:

    pageable   x -> CPU core -> staging buffer -> PCIe -> device     a core's copying sets the pace
    pinned     x -------------------------------> PCIe -> device     the link sets the pace

Pinning has a price: it locks every page, which takes time of the order of a copy itself, and the operating system has
that memory no more. It pays for buffers that are used again and again, as a DataLoader's are.

Predict before you measure: which part of the link's 64 GB/s (PCIe 5.0 x16) can one large copy reach? Would two copies
at once go faster?
"""

import torch

CLOCK = "wall"  # the CPU's copying is part of the lesson
DEVICE = "cuda"


def inputs(n=67_108_864, device="cuda"):
    x = torch.randn(n, device=device).cpu().pin_memory()  # drawn on the device: a CPU takes longer
    return {"x": x, "out": torch.empty(n, device=device)}


def cost(x, out):
    return {"h2d_bytes": x.nbytes}


def run(x, out):
    return out.copy_(x)
