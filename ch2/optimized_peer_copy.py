"""Copy 256 MiB from one GPU to another directly: every byte crosses once, over NVLink where there is one.

    GPU 0 -> GPU 1    256 MiB, by the copy engine of one of them, into the memory of the other

Neither the host's memory nor its processor sees them. NVLink of capability 9.0 GPUs has 900 GB/s by the datasheet, in
both directions together: 256 MiB take 0.6 ms at best. Over PCIe with peer access it is one link's time instead of two.

Predict before you measure: where there is neither, the driver takes the way over the host by itself, in pieces, with
both links busy at once. What would that be worth?
"""

import torch

CLOCK = "wall"  # the copy ends on another GPU than it began
DEVICE = "cuda"
REQUIRES = {"gpus": 2}


def inputs(n=67_108_864, device="cuda"):
    x = torch.randn(n, device=device)
    other = (x.device.index + 1) % torch.cuda.device_count()
    return {"x": x, "out": torch.empty_like(x, device=f"cuda:{other}")}


def cost(x, out):
    return {"link_bytes": x.nbytes}


def run(x, out):
    out.copy_(x, non_blocking=True)
    torch.cuda.synchronize(out.device)
    return out
