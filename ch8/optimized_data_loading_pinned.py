"""Six training steps whose batches lie in pinned memory: the GPU fetches 4.6 MiB a batch itself, and no process waits.

Problem: a batch of `optimized_data_loading_workers.py` lies in pageable memory. The driver copies it into a buffer of
its own before the GPU can fetch it. This process waits for both, and for the step before.
Idea: with `pin_memory=True` a thread of this process copies each batch into pinned memory, before it is asked for. With
`non_blocking=True` the copy is a launch like others, and the process can ask for the next batch at once.
Cost: the copy to pinned memory is still made, by a thread beside. To the GPU 4.6 MiB take 0.1 to 0.4 ms at 12 to 50
GB/s. To fetch them takes two workers 32 ms.
Predict: which wait does it shorten, and what part of a call is that?
"""

import pictures
import torch
from torch.utils.data import DataLoader

CLOCK = "wall"  # processes of the host are the lesson
DEVICE = "cuda"  # pinned memory is a GPU's
VERSUS = "workers"


def inputs(samples=192, batch=32, side=256, crop=224, answer_s=1e-3, hidden=512, device="cuda"):
    return pictures.drawn(samples, batch, side, crop, answer_s, hidden, device)


def run(packed, places, state_weights, batch, side, crop, answer_s):
    device, losses = state_weights[0].device, []
    crops = pictures.Crops(packed, places, side, crop, answer_s)
    for pixels in DataLoader(crops, batch, num_workers=2, pin_memory=True):
        losses.append(pictures.step(pixels.to(device, non_blocking=True), state_weights))
    return torch.stack(losses)
