"""Channels first: neighbouring lanes load neighbouring channels, and store them a whole plane apart.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(batch, pixels, channels, device="cuda"):
    return {"images": torch.randn(batch, pixels, channels, device=device).half()}


@triton.jit
def channels_kernel(images_ptr, out_ptr, pixels, channels, TILE: tl.constexpr):
    channel = tl.program_id(0) * TILE + tl.arange(0, TILE)[None, :]
    pixel = tl.program_id(1) * TILE + tl.arange(0, TILE)[:, None]
    image = tl.program_id(2)
    mask = (pixel < pixels) & (channel < channels)
    x = tl.load(images_ptr + (image * pixels + pixel) * channels + channel, mask=mask)
    tl.store(out_ptr + (image * pixels + pixel) * channels + channel, x, mask=mask)


def run(images):
    batch, pixels, channels = images.shape
    out = torch.empty(batch, channels, pixels, dtype=images.dtype, device=images.device)
    grid = (triton.cdiv(channels, 64), triton.cdiv(pixels, 64), batch)
    channels_kernel[grid](images, out, pixels, channels, TILE=64)
    return out
