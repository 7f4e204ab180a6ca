"""Six training steps whose data two other processes fetch: the next batches are under way while the GPU computes.

Problem: in `baseline_data_loading.py` one process fetches or issues, and the GPU waits for it.
Idea: `num_workers=2` starts two processes. Each has every second batch, and is up to two batches ahead
(`prefetch_factor`). A finished batch comes through shared memory:

    worker 1       fetch batch 1 | fetch batch 3 | fetch batch 5
    worker 2       fetch batch 2 | fetch batch 4 | fetch batch 6
    this process                 | issue 1, 2    | issue 3, 4    | issue 5, 6

Cost: the same work in two more processes, and a batch in half of the time, 32 ms, until the step or the cores are the
limit. The processes start and end in each call: tens of ms or more, for which the first batch waits, too. In training
they do so once an epoch, or, with `persistent_workers=True`, once.
Predict: how many workers does it take until a step of 2 ms no longer waits?
"""

import pictures
import torch
from torch.utils.data import DataLoader

CLOCK = "wall"  # processes of the host are the lesson


def inputs(samples=192, batch=32, side=256, crop=224, answer_s=1e-3, hidden=512, device="cuda"):
    return pictures.drawn(samples, batch, side, crop, answer_s, hidden, device)


def run(packed, places, state_weights, batch, side, crop, answer_s):
    device, losses = state_weights[0].device, []
    crops = pictures.Crops(packed, places, side, crop, answer_s)
    for pixels in DataLoader(crops, batch, num_workers=2):
        losses.append(pictures.step(pixels.to(device), state_weights))
    return torch.stack(losses)
