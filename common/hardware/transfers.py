"""Bandwidth of transfers by size: between host memory and a GPU's memory, and between GPUs."""

from functools import partial

import torch

from common.machine.limits import best_seconds, peer_rate

SIZES = [4 << 10 << 2 * k for k in range(9)]  # bytes: 4 KiB to 256 MiB


def transfers(device: str) -> dict[str, list[list[float]]]:
    """Name -> [bytes, bytes per second], the best of several tries each. Wall time until the device is done."""
    rates = {}
    for way in ("host to device", "device to host"):
        for memory in ("pinned", "pageable"):
            rates[f"{way}, {memory}"] = [[size, _rate(device, way, memory, size)] for size in SIZES]
    index, count = torch.device(device).index or 0, torch.cuda.device_count()
    for other in (number for number in range(count) if number != index):
        name = f"cuda:{other}"
        rates[f"cuda:{index} to {name}"] = [[size, peer_rate(device, name, size)] for size in SIZES]
    return rates


def _rate(device: str, way: str, memory: str, size: int) -> float:
    host = torch.zeros(size, dtype=torch.uint8, pin_memory=memory == "pinned")
    there = torch.zeros(size, dtype=torch.uint8, device=device)
    target, source = (there, host) if way == "host to device" else (host, there)
    return size / best_seconds(partial(target.copy_, source, non_blocking=True), device, "wall")
