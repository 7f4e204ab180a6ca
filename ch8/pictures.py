"""Pictures as a store keeps them, compressed, what a loader does with one, and a training step on a batch of them.

The store is this process's memory, and answers after a time that is slept: files and networks cannot be controlled.
A picture [side, side, 3] has 16 shades, so that it can be compressed: noise of 256 cannot. A data set is smaller here
than a real one, so that it is drawn in a moment: its samples are crops, several of each picture.
"""

import time
import zlib
from dataclasses import dataclass

import torch
import torch.nn.functional as F

PATCH = 16  # pixels a side: a token of the model
RATE = 0.02  # of learning: losses fall, and stay finite


@dataclass(frozen=True)
class Crops:
    """A data set as torch.utils.data.DataLoader wants it: a length, and a sample [3, crop, crop] of bytes by number."""

    packed: torch.Tensor  # [pictures, bytes], streams of zlib, each with zeros behind it
    places: torch.Tensor  # [samples, 3]: which picture, and the crop's first row and column
    side: int
    crop: int
    answer_s: float  # from a request until the store's answer

    def __len__(self):
        return len(self.places)

    def __getitem__(self, i):
        picture, top, left = self.places[i].tolist()
        time.sleep(self.answer_s)
        pixels = bytearray(zlib.decompress(self.packed[picture].numpy()))
        whole = torch.frombuffer(pixels, dtype=torch.uint8).view(self.side, self.side, 3)
        return whole[top : top + self.crop, left : left + self.crop].permute(2, 0, 1).contiguous()


def drawn(samples, batch, side, crop, answer_s, hidden, device, pictures=8):  # the arguments of `inputs`
    """Fresh pictures and crops in host memory, and weights on the device."""
    shades = torch.randint(16, (pictures, side, side, 3), dtype=torch.uint8) * 16
    packed = torch.zeros(pictures, side * side * 3, dtype=torch.uint8)
    for row, picture in zip(packed, shades, strict=True):
        pack = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)  # packs in a moment, and is as slow as others to unpack
        stream = pack.compress(picture.numpy().tobytes()) + pack.flush()
        row[: len(stream)] = torch.frombuffer(bytearray(stream), dtype=torch.uint8)
    corners = torch.randint(side - crop + 1, (samples, 2))
    shapes = [(hidden, 3, PATCH, PATCH), (4 * hidden, hidden), (hidden, 4 * hidden)]
    weights = [torch.randn(shape, device=device) * shape[1:].numel() ** -0.5 for shape in map(torch.Size, shapes)]
    return {
        "packed": packed, "places": torch.cat([torch.randint(pictures, (samples, 1)), corners], 1),
        "state_weights": weights, "batch": batch, "side": side, "crop": crop, "answer_s": answer_s,
    }  # fmt: skip


def step(pixels, weights):
    """A step of gradient descent on a batch [B, 3, crop, crop] of bytes: `weights` are changed. Returns the loss."""
    leaves = [w.detach().requires_grad_() for w in weights]
    w_in, w_up, w_down = leaves
    x = F.conv2d(pixels.to(w_in.dtype) / 128 - 1, w_in, stride=PATCH).flatten(2).mT  # [B, tokens, hidden]
    loss = (x - F.linear(F.gelu(F.linear(x, w_up)), w_down)).square().mean()
    for w, gradient in zip(weights, torch.autograd.grad(loss, leaves), strict=True):
        w -= RATE * gradient
    return loss.detach()
