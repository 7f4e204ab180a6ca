"""Channels first: a program moves a tile of 64 pixels and 64 channels, which has whole sectors in both orders.

64 channels of a pixel are 128 bytes of the input, 4 sectors. 64 pixels of a channel are 128 bytes of the result. The
lanes of the load lie along the channels, those of the store along the pixels. Triton moves the tile through shared
memory between them, where it stays within the SM. Any tile will do that has at least 16 elements (32 bytes) in both
dimensions; a longer one leaves fewer sectors that two tiles share where a row does not end at a sector.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"batch": 2, "pixels": 127, "channels": 33}, "check/one": {"batch": 1, "pixels": 1, "channels": 1},
    "check/colours": {"batch": 3, "pixels": 129, "channels": 3},
    "check/wide": {"batch": 1, "pixels": 5, "channels": 259}, "count": {"batch": 2, "pixels": 128, "channels": 256},
    "default": {"batch": 64, "pixels": 4096, "channels": 512},
}  # fmt: skip


def inputs(batch, pixels, channels, device="cuda"):
    return {"images": torch.randn(batch, pixels, channels, device=device).half()}


def reference(images):
    return images.transpose(1, 2).contiguous()


def cost(images):
    return {"dram_bytes": 2 * images.nbytes}


@triton.jit
def channels_kernel(images_ptr, out_ptr, pixels, channels, TILE: tl.constexpr):
    channel = tl.program_id(0) * TILE + tl.arange(0, TILE)[None, :]
    pixel = tl.program_id(1) * TILE + tl.arange(0, TILE)[:, None]
    image = tl.program_id(2)
    mask = (pixel < pixels) & (channel < channels)
    x = tl.load(images_ptr + (image * pixels + pixel) * channels + channel, mask=mask)
    tl.store(out_ptr + (image * channels + channel) * pixels + pixel, x, mask=mask)


def run(images):
    batch, pixels, channels = images.shape
    out = torch.empty(batch, channels, pixels, dtype=images.dtype, device=images.device)
    grid = (triton.cdiv(channels, 64), triton.cdiv(pixels, 64), batch)
    channels_kernel[grid](images, out, pixels, channels, TILE=64)
    return out
