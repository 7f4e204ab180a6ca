"""What this device can do at best, measured now: the denominators of the limit column.

Each figure is the best of a few tries on random data with working sets far above the caches; amounts per second,
where a copy counts the bytes read and the bytes written, and one FMA counts two FLOPs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from common.clock import make_clock
from common.device import datasheet, describe

BANDWIDTH_BYTES = {"cuda": 1 << 30, "cpu": 256 << 20}  # a buffer: at least 4 x any L2 / most last-level caches
GEMM = {  # cost key -> (dtype, tf32, n on a GPU, n on a CPU or None): sizes that reach the peak in a few ms
    "fp64_flops": (torch.float64, False, 4096, 1024),
    "fp32_flops": (torch.float32, False, 4096, 1536),
    "tf32_flops": (torch.float32, True, 8192, None),
    "fp16_flops": (torch.float16, False, 8192, None),
    "bf16_flops": (torch.bfloat16, False, 8192, None),
}


@dataclass(frozen=True)
class Limit:
    """A resource's rate, amounts per second: as measured here and as the datasheet says, each with its origin."""

    measured: float | None
    datasheet: float | None
    how: str
    source: str


def measure_limits(device: str = "cuda:0") -> dict[str, Limit]:
    """Measured and datasheet peaks by cost key, in about 3 s."""
    info = describe(device)
    peaks, source = datasheet(info["name"])
    found = {**_bandwidths(device, info["kind"]), **_gemms(device, info)}
    if info["kind"] == "cuda":
        found |= _transfers(device)
    return {key: Limit(rate, peaks.get(key), how, source if key in peaks else "") for key, (rate, how) in found.items()}


def of_limit(cost: dict[str, float], limits: dict[str, Any], which: str = "measured") -> tuple[float | None, str]:
    """(least seconds for these amounts, the cost key that sets them); (None, "") where a needed peak is unknown."""
    times = {}
    for key, amount in cost.items():
        peak = limits.get(key, {}).get(which)
        if not peak:
            return None, ""
        times[key] = amount / peak
    slowest = max(times, key=lambda key: times[key], default="")
    return (times[slowest], slowest) if slowest else (None, "")


def _best(call: Callable[[], Any], device: str, clock: str, tries: int = 7) -> float:
    timer = make_clock(clock, device)
    call()
    return min(timer.sample([call]).seconds for _ in range(tries))


def _bandwidths(device: str, kind: str) -> dict[str, tuple[float, str]]:
    size = BANDWIDTH_BYTES[kind]
    clock = "device" if kind == "cuda" else "wall"
    x, y = torch.rand(size // 4, device=device), torch.rand(size // 4, device=device)
    label = f"{size >> 20} MiB float32, best of 7"
    return {
        "dram_bytes": (2 * size / _best(lambda: y.copy_(x), device, clock), f"copy of {label}, read + written"),
        "dram_read_bytes": (size / _best(lambda: x.sum(), device, clock), f"sum of {label}"),
        "dram_write_bytes": (size / _best(lambda: y.fill_(1.0), device, clock), f"fill of {label}"),
    }


def _gemms(device: str, info: dict[str, Any]) -> dict[str, tuple[float, str]]:
    found = {}
    gpu = info["kind"] == "cuda"
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        for key, (dtype, tf32, on_gpu, on_cpu) in GEMM.items():
            n = on_gpu if gpu else on_cpu
            if n is None or (gpu and info["capability"] < [8, 0] and key in ("tf32_flops", "bf16_flops")):
                continue
            torch.backends.cuda.matmul.allow_tf32 = tf32
            a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
            seconds = _best(partial(torch.matmul, a, b), device, "device" if gpu else "wall")
            found[key] = (2 * n**3 / seconds, f"{n} x {n} x {n} matrix product, random data, best of 7")
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return found


def _transfers(device: str) -> dict[str, tuple[float, str]]:
    size = 256 << 20
    host, there = torch.empty(size, dtype=torch.uint8).pin_memory(), torch.empty(size, dtype=torch.uint8, device=device)
    how = "256 MiB, pinned, best of 7"
    return {
        "h2d_bytes": (size / _best(lambda: there.copy_(host, non_blocking=True), device, "wall"), how),
        "d2h_bytes": (size / _best(lambda: host.copy_(there, non_blocking=True), device, "wall"), how),
    }
