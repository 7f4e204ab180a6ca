"""Channels first: neighbouring lanes load neighbouring channels, and store them a whole plane apart.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(batch, pixels, channels, device="cuda"):
    return {"images": torch.randn(batch, pixels, channels, device=device).half()}


@triton.jit
def channels_kernel(images_ptr, out_ptr, pixels, channels, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel, pixel, image = offsets % channels, offsets // channels % pixels, offsets // channels // pixels
    x = tl.load(images_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + (image * channels + channel) * pixels + pixel, x, mask=offsets < n)


def run(images):
    batch, pixels, channels = images.shape
    out = torch.empty(batch, channels, pixels, dtype=images.dtype, device=images.device)
    n = images.numel()
    channels_kernel[(triton.cdiv(n, 256),)](images, out, pixels, channels, n, BLOCK=256)
    return out
