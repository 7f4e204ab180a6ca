"""Channels first: the tile itself is turned, and stored with a mask that is turned as well.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(batch, pixels, channels, device="cuda"):
    return {"images": torch.randn(batch, pixels, channels, device=device).half()}


@triton.jit
def channels_kernel(images_ptr, out_ptr, pixels, channels, PIXELS: tl.constexpr, CHANNELS: tl.constexpr):
    across = tl.cdiv(channels, CHANNELS)
    image, tile = tl.program_id(1), tl.program_id(0)
    pixel = tile // across * PIXELS + tl.arange(0, PIXELS)
    channel = tile % across * CHANNELS + tl.arange(0, CHANNELS)
    images_ptr += image * pixels * channels
    out_ptr += image * pixels * channels
    mask = (pixel < pixels)[:, None] & (channel < channels)[None, :]
    x = tl.load(images_ptr + pixel[:, None] * channels + channel[None, :], mask=mask)
    tl.store(out_ptr + channel[:, None] * pixels + pixel[None, :], tl.trans(x), mask=tl.trans(mask))


def run(images):
    batch, pixels, channels = images.shape
    out = torch.empty(batch, channels, pixels, dtype=images.dtype, device=images.device)
    grid = (triton.cdiv(pixels, 128) * triton.cdiv(channels, 32), batch)
    channels_kernel[grid](images, out, pixels, channels, PIXELS=128, CHANNELS=32)
    return out
