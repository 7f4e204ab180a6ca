"""This device's limits, measured now: the denominators of the limit column.

Each figure is the best of several tries with working sets far above the caches. Matrix products use random data,
because products of zeros are faster. Units: amounts per second. A copy counts the bytes read and the bytes written; one
FMA counts two FLOPs.
"""

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from common.machine.clock import make_clock, synchronize
from common.machine.device import datasheet, describe

BANDWIDTH_BYTES = {"cuda": 1 << 30, "cpu": 256 << 20}  # a buffer: at least 4 x any L2 / most last-level caches
GEMM = {  # cost key -> (dtype, tf32, n on a GPU, n on a CPU or None): sizes that reach the peak in a few ms
    "fp64_flops": (torch.float64, False, 4096, 1024),
    "fp32_flops": (torch.float32, False, 4096, 1536),
    "tf32_flops": (torch.float32, True, 8192, None),
    "fp16_flops": (torch.float16, False, 8192, None),
    "bf16_flops": (torch.bfloat16, False, 8192, None),
}
# the keys of a pair's cost
RESOURCES = {
    *GEMM, *(f"{name}_bytes" for name in ("dram", "dram_read", "h2d", "d2h", "link")), "fp8_flops", "int8_flops",
}  # fmt: skip
FP8_SIDE = 8192
TRANSFER_BYTES = 256 << 20


@dataclass(frozen=True)
class Limit:
    """A resource's rate, amounts per second: measured here and from the datasheet, each with its origin."""

    measured: float | None
    datasheet: float | None
    how: str
    source: str


def measure_limits(device: str = "cuda:0") -> dict[str, Limit]:
    """Measured and datasheet peaks by cost key, in about 3 s. A resource that the device lacks has no key."""
    info = describe(device)
    peaks, source = datasheet(info["name"])
    rates = _bandwidths(device, info["kind"]) | _gemms(device, info)
    if info["kind"] == "cuda":
        rates |= _fp8(device, info) | _transfers(device) | _link(device, info)
    if "dram_bytes" in peaks:
        peaks["dram_read_bytes"] = peaks["dram_bytes"]  # the same bus
    return {key: Limit(rate, peaks.get(key), how, source if key in peaks else "") for key, (rate, how) in rates.items()}


def cost_problem(cost: dict[str, Any], may_be_zero: bool) -> str:
    """What is wrong with the amounts that a pair declares; empty if nothing."""
    for key, amount in cost.items():
        if key not in RESOURCES:
            return f"names {key}: it must be of {', '.join(sorted(RESOURCES))}"
        is_number = type(amount) in (int, float) and 0 <= amount <= sys.float_info.max
        if not is_number or not (amount or may_be_zero or key == "link_bytes"):  # a rank may only receive
            return f"gives {key} = {' '.join(repr(amount).split()):.60}: a positive number is needed (int or float)"
    return ""


def best_seconds(call: Callable[[], Any], device: str, clock: str, tries: int = 7) -> float:
    """Seconds of the fastest of several calls, after a warm-up. `clock`: see common.machine.clock.make_clock."""
    timer = make_clock(clock, device)
    call()
    return min(timer.sample([call]).seconds for _ in range(tries))


def _bandwidths(device: str, kind: str) -> dict[str, tuple[float, str]]:
    size, clock = BANDWIDTH_BYTES[kind], "device" if kind == "cuda" else "wall"
    x, y = (torch.rand(size // 4, device=device) for _ in range(2))
    label = f"{size >> 20} MiB float32, best of 7"
    reads: dict[str, Callable[[], Any]] = {"sum": x.sum}
    if kind == "cuda" and importlib.util.find_spec("triton"):
        from common.machine.read_kernel import read

        reads["reading"] = partial(read, x)
    read_s, read_how = min((best_seconds(call, device, clock), how) for how, call in reads.items())
    return {
        "dram_bytes": (2 * size / best_seconds(lambda: y.copy_(x), device, clock), f"copy of {label}, read + written"),
        "dram_read_bytes": (size / read_s, f"{read_how} of {label}"),
        "dram_write_bytes": (size / best_seconds(lambda: y.fill_(1.0), device, clock), f"fill of {label}"),
    }


def _gemms(device: str, info: dict[str, Any]) -> dict[str, tuple[float, str]]:
    rates, gpu = {}, info["kind"] == "cuda"
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        for key, (dtype, tf32, on_gpu, on_cpu) in GEMM.items():
            n = on_gpu if gpu else on_cpu
            if n is None or (gpu and info["capability"] < [8, 0] and key in ("tf32_flops", "bf16_flops")):
                continue
            torch.backends.cuda.matmul.allow_tf32 = tf32
            a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
            seconds = best_seconds(partial(torch.matmul, a, b), device, "device" if gpu else "wall")
            rates[key] = (2 * n**3 / seconds, f"{n} x {n} x {n} matrix product, random data, best of 7")
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return rates


def _fp8(device: str, info: dict[str, Any]) -> dict[str, tuple[float, str]]:
    """e4m3 x e4m3 -> bf16. Tensor cores need the right factor column-major and the scales on the device."""
    if info["capability"] < [8, 9]:
        return {}
    n, scale = FP8_SIDE, torch.ones((), device=device)
    a, b = (torch.randn(n, n, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    options: dict[str, Any] = {"scale_a": scale, "scale_b": scale, "out_dtype": torch.bfloat16, "use_fast_accum": True}
    seconds = best_seconds(partial(torch._scaled_mm, a, b.t(), **options), device, "device")
    how = f"{n} x {n} x {n} matrix product of e4m3, fast accumulation, random data, best of 7"
    return {"fp8_flops": (2 * n**3 / seconds, how)}


def _transfers(device: str) -> dict[str, tuple[float, str]]:
    size, how = TRANSFER_BYTES, f"{TRANSFER_BYTES >> 20} MiB, pinned, best of 7"
    host = torch.empty(size, dtype=torch.uint8).pin_memory()
    on_gpu = torch.empty(size, dtype=torch.uint8, device=device)
    copies = {"h2d_bytes": (on_gpu, host), "d2h_bytes": (host, on_gpu)}
    calls = {key: partial(target.copy_, source, non_blocking=True) for key, (target, source) in copies.items()}
    return {key: (size / best_seconds(call, device, "wall"), how) for key, call in calls.items()}


def _link(device: str, info: dict[str, Any]) -> dict[str, tuple[float, str]]:
    """From this GPU to the next one; empty on a machine with one GPU."""
    if info["gpus"] < 2:
        return {}
    other = f"cuda:{((torch.device(device).index or 0) + 1) % info['gpus']}"
    how = f"{TRANSFER_BYTES >> 20} MiB to {other}, best of 7"
    return {"link_bytes": (peer_rate(device, other, TRANSFER_BYTES), how)}


def peer_rate(device: str, other: str, size: int) -> float:
    """Bytes per second of a copy from one GPU's memory to another's, until both are done."""
    source, target = (torch.empty(size, dtype=torch.uint8, device=location) for location in (device, other))

    def copy() -> None:
        target.copy_(source, non_blocking=True)
        synchronize(other)

    return size / best_seconds(copy, device, "wall")
