"""Copy 256 MiB from one GPU to another directly: every byte crosses one link, NVLink where there is one.

Problem: in `baseline_peer_copy.py` every byte crosses two PCIe links and is stored in the host's memory between.

Idea: the copy engine of one GPU writes into the memory of the other. `nvidia-smi topo -m` says over which link:

    GPU 0 -> GPU 1    256 MiB, 0.6 ms over NVLink at 450 GB/s (datasheet of capability 9.0, one direction)

Cost: none for the program. It needs two GPUs that may access each other's memory.

Predict: two GPUs without NVLink and without peer access. The driver then copies through the host in small pieces, with
both PCIe links busy at the same time. Which ratio is possible at best?
"""

import torch

CLOCK = "wall"  # the copy ends on another GPU than it began
DEVICE = "cuda"
REQUIRES = {"gpus": 2}


def inputs(n=67_108_864, device="cuda"):
    x = torch.randn(n, device=device)
    other = (x.device.index + 1) % torch.cuda.device_count()
    return {"x": x, "out": torch.empty_like(x, device=f"cuda:{other}")}


def run(x, out):
    out.copy_(x, non_blocking=True)
    torch.cuda.synchronize(out.device)
    return out
