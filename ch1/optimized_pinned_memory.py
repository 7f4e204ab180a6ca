"""Copy 64 MiB from the host to the device out of pinned memory: the copy engine reads it directly, every byte once.

Problem: out of pageable memory, a CPU core copies every byte into a staging buffer before the link carries it.

Idea: pinned (page-locked) memory stays at its physical address. The copy engine gets that address and needs neither the
CPU core nor the staging buffer:

    pageable   x -> CPU core -> staging buffer -> PCIe -> device     the core's copy sets the pace
    pinned     x -----------------------------> PCIe -> device       the link sets the pace

Cost: pinning locks every page, which takes time, and the operating system cannot use that memory for anything else. It
pays for buffers that are used many times, as a DataLoader's are. (Pinning is a part of `inputs` here, so it is not
timed.)

Predict: 64 MiB are 67 MB. What is the least time of the copy over a PCIe 5.0 x16 link with 64 GB/s?
"""

import torch

CLOCK = "wall"  # the CPU's copying is part of the lesson
DEVICE = "cuda"


def inputs(n=16_777_216, device="cuda"):
    x = torch.randn(n, device=device).cpu().pin_memory()  # drawn on the device: a CPU takes longer
    return {"x": x, "out": torch.empty(n, device=device)}


def run(x, out):
    return out.copy_(x)
