"""Six training steps that wait for their data: 32 pictures are fetched between two steps, and the GPU idles meanwhile.

Problem: a sample is a compressed picture of 192 KiB. A store answers after 1 ms, then it is unpacked and cut, about
1 ms. The loader does this when a batch is asked for, in the process that also issues the step:

    this process   fetch 32 | issue | fetch 32 | issue | fetch 32 ...
    GPU                       step             | step  |

Cost: 32 * 2 = 64 ms a batch. A step has 89 GFLOP, 2 ms at 40 TFLOP/s. (On a CPU the store answers after 12 ms here:
workers that unpack take cores from the step, workers that wait do not.)
Predict: `optimized_data_loading_workers.py` has two processes that fetch, while the GPU computes. How many times as
fast can a call be at most?
"""

import pictures
import torch
from torch.utils.data import DataLoader

SIZES = {
    "check": {"samples": 13, "batch": 3, "side": 41, "crop": 33, "answer_s": 0.0, "hidden": 24},
    "check/one": {"samples": 1, "batch": 2, "side": 16, "crop": 16, "answer_s": 0.0, "hidden": 7},
    "default": {},
    "cpu": {"samples": 16, "batch": 4, "side": 64, "crop": 48, "answer_s": 12e-3, "hidden": 16},
}
CLOCK = "wall"  # processes of the host are the lesson
STRUCTURE = {
    "packed": "streams of zlib",
    "places": "a picture that is there, and a crop inside of it",
    "state_weights": "a model's: losses stay finite",
    "batch": "a number of samples",
    "side": "the pictures'",
    "crop": "not larger than a picture",
    "answer_s": "a short time",
}


def inputs(samples=192, batch=32, side=256, crop=224, answer_s=1e-3, hidden=512, device="cuda"):
    return pictures.drawn(samples, batch, side, crop, answer_s, hidden, device)


def cost(packed, places, state_weights, batch, side, crop, answer_s):
    tokens = len(places) * (crop // pictures.PATCH) ** 2
    products = 2 * state_weights[0].numel() + 3 * (state_weights[1].numel() + state_weights[2].numel())
    return {"fp32_flops": 2 * tokens * products, "h2d_bytes": len(places) * 3 * crop**2}


def run(packed, places, state_weights, batch, side, crop, answer_s):
    device, losses = state_weights[0].device, []
    crops = pictures.Crops(packed, places, side, crop, answer_s)
    for pixels in DataLoader(crops, batch):
        losses.append(pictures.step(pixels.to(device), state_weights))
    return torch.stack(losses)
