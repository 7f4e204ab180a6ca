"""Four steps of a network for images: they wait for their data.

`enumerate(DataLoader)` is the longest name of the profile, and no operator of torch runs in most of it: in the timeline
it is Python's. All else, forward and backward passes and the optimizer, takes less than a third of the call. So the
products are not the limit, and faster ones would gain little.

The program unpacks and normalizes each image in the process that trains, one image after another, before each step.
Worker processes (`DataLoader(..., num_workers=3)`) do the same while a step runs. Then the longer one of two times
decides: the step alone, or the loading shared by the workers. So at most whole / (whole - loading) can be gained, with
loading / (whole - loading) workers, rounded up. Cheaper loading helps as well: data that is stored as it is used.

Below is the program of the profile.
"""

import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

cause = "data"
gain = (3.3, 4.0)  # times as fast, if no step waited for that any more
workers = 3  # processes


class Images(Dataset):
    def __init__(self, packed, labels):
        self.packed, self.labels = packed, labels

    def __len__(self):
        return len(self.packed)

    def __getitem__(self, place):
        pixels = np.frombuffer(zlib.decompress(self.packed[place]), np.uint8).reshape(3, 96, 96)
        values = pixels.astype(np.float32) / 255
        values = (values - values.mean((1, 2), keepdims=True)) / values.std((1, 2), keepdims=True)
        return values[:, :, ::-1].copy() if place % 2 else values, self.labels[place]


def inputs(images=128, device="cpu"):
    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    packed = [zlib.compress(np.sort(draw.integers(0, 256, (3, 96, 96), np.uint8)).tobytes()) for _ in range(images)]
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 8, 8), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, 2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(32 * 5 * 5, 10),
    )  # fmt: skip
    loader = DataLoader(Images(packed, draw.integers(0, 10, images)), batch_size=32)
    return {"loader": loader, "model": model, "optimizer": torch.optim.AdamW(model.parameters(), lr=1e-3)}


def run(loader, model, optimizer):
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
