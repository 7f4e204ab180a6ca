"""A GPU's part of the sheet: limits, bandwidth and latency by working set, measured with our own kernels.

A figure is the best of several launches. Before them the working set is read once, so that it is in the cache if it
fits.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.hardware.facts import gpu_facts, links
from common.hardware.levels import Curve, Levels, levels, working_sets
from common.machine.device import free_bytes
from common.machine.limits import best_seconds, measure_limits, peer_rate

KERNELS = Path(__file__).with_name("kernels.cu")
THREADS = 256
UNROLL = 4  # 16-byte accesses in flight per thread: 8 blocks per SM have 128 KiB in flight, far more than DRAM needs
TILE = THREADS * UNROLL * 16  # bytes that a block moves between two tests of its position
LINE = 128  # bytes of a cache line
CHASES = 16  # loads between two tests of the counter
OPTIONS = (f"-DTHREADS={THREADS}", f"-DUNROLL={UNROLL}", f"-DCHASES={CHASES}")
SMALLEST, LARGEST = 16 << 10, 4 << 30  # bytes: fits all but the oldest GPUs' L1; far above any L2
LONGEST_CHAIN = 1 << 30  # or 16 x L2, so that hardly any of its lines is still cached
IN_CACHE, IN_DRAM = 128 << 20, 8 << 20  # bytes per SM and launch: about a millisecond in either case
TRIES = 5
STEPS = 4096  # loads of a chase: a few ms at most
TRANSFERS = [4 << 10 << 2 * k for k in range(9)]  # bytes: 4 KiB to 256 MiB


def measure_gpu(device: str, info: dict[str, Any], say: Callable[[str, float], None]) -> dict[str, Any]:
    """All of a sheet except its environment, in about 20 s. The device must be the current one."""
    say("limits", 0.05)
    limits = {key: asdict(limit) for key, limit in measure_limits(device).items()}
    torch.cuda.empty_cache()
    probe = Probe(device)
    say("bandwidth", 0.3)
    bandwidth = {kind: probe.bandwidth(kind) for kind in ("read", "write", "copy")}
    say("latency", 0.5)
    latency = probe.latency()
    del probe
    torch.cuda.empty_cache()
    say("transfers", 0.7)
    moved = transfers(device)
    props = torch.cuda.get_device_properties(device)
    inside = {"L1": props.shared_memory_per_multiprocessor, "L2": props.L2_cache_size}
    return {
        "facts": gpu_facts(device, info), "limits": limits, "bandwidth": bandwidth, "latency": latency,
        "levels": gpu_levels(inside, bandwidth, latency, limits), "transfers": moved, "links": links(),
    }  # fmt: skip


def gpu_levels(inside: dict[str, int], bandwidth: dict[str, Curve], latency: Curve, limits: dict[str, Any]) -> Levels:
    """The levels of the curves. DRAM is the larger of its level and the rates of the limits' reading, fill and copy.

    (Our copy is a loop over a set that is read many times; a library's copy is faster in DRAM.)
    """
    by_level = levels(inside, bandwidth, latency)
    for kind in ("write", "copy"):
        by_level.get("L1", {}).pop(kind, None)  # stores go to L2: this was not measured in L1
    for kind, key in {"read": "dram_read_bytes", "write": "dram_write_bytes", "copy": "dram_bytes"}.items():
        if "DRAM" in by_level:
            by_level["DRAM"][kind] = max(by_level["DRAM"][kind], limits[key]["measured"])
    return by_level


class Probe:
    """The kernels on a device, and a buffer of up to 4 GiB or half of the free memory. All sets begin at its start."""

    def __init__(self, device: str) -> None:
        props = torch.cuda.get_device_properties(device)
        self.sms, self.l2_bytes = props.multi_processor_count, props.L2_cache_size
        self.blocks = self.sms * (props.max_threads_per_multi_processor // THREADS)  # as many as run at the same time
        most = min(LARGEST, (free_bytes(device) or 0) // 2) // TILE * TILE
        self.buffer = torch.zeros(most, dtype=torch.uint8, device=device)
        self.sums = torch.zeros(self.blocks * THREADS, dtype=torch.int32, device=device)
        self._elapsed = torch.zeros(2, dtype=torch.int64, device=device)
        self._kernels = _kernels()

    def steps(self, size: int) -> int:
        """Tiles per block. In DRAM few: otherwise a slow block would find lines that its successor has loaded."""
        per_sm = IN_CACHE if size <= self.l2_bytes else IN_DRAM
        return -(-max(size, self.sms * per_sm) // (self.blocks * TILE))

    def walk(self, kind: str, size: int) -> int:
        """Queue a launch that reads, writes (ones) or copies within the first `size` bytes. Returns the bytes moved."""
        start, parts = self.buffer.data_ptr(), 2 if kind == "copy" else 1
        tiles, steps = size // parts // TILE, -(-self.steps(size) // parts)
        target, fits = start + (size // 2 if kind == "copy" else 0), np.bool_(size <= self.l2_bytes)
        arguments = (start, target, np.uint32(tiles), fits, np.uint32(steps), self.sums.data_ptr())
        self._kernels[f"{kind}_set"]((self.blocks,), (THREADS,), arguments)
        return parts * steps * self.blocks * TILE

    def bandwidth(self, kind: str) -> list[list[float]]:
        """[working set in bytes, bytes per second]. A copy's set is its source and its target; both are counted."""
        unit = 2 * TILE if kind == "copy" else TILE
        return [[size, self._rate(kind, size)] for size in working_sets(SMALLEST, self.buffer.nbytes, unit)]

    def _rate(self, kind: str, size: int) -> float:
        moved = self.walk(kind, size)
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(TRIES)]
        for start, stop in events:  # all queued: the device never waits for the host
            start.record()
            self.walk(kind, size)
            stop.record()
        torch.cuda.synchronize()
        return moved / (1e-3 * min(start.elapsed_time(stop) for start, stop in events))

    def latency(self) -> list[list[float]]:
        """[working set in bytes, SM cycles, seconds] of one thread's load, whose address the previous load returned."""
        most = min(self.buffer.nbytes, max(LONGEST_CHAIN, 16 * self.l2_bytes))
        return [[size, *self._chase(size)] for size in working_sets(SMALLEST, most, TILE)]

    def _chase(self, size: int) -> tuple[float, float]:
        lines = size // LINE
        order = torch.randperm(lines, device=self.buffer.device)
        self.buffer[:size].view(torch.int64)[:: LINE // 8] = self.buffer.data_ptr() + LINE * cycle(order)
        best = []
        for _ in range(TRIES):
            self.walk("read", size)  # by all SMs, into L2 if it fits
            warm = min(lines, STEPS)  # by this thread, into its L1
            arguments = (self.buffer.data_ptr(), np.uint32(warm), np.uint32(STEPS), self._elapsed.data_ptr())
            self._kernels["chase"]((1,), (1,), arguments)
            cycles, nanoseconds = self._elapsed.tolist()
            best.append((cycles / STEPS, 1e-9 * nanoseconds / STEPS))
        return min(best)


def cycle(order: torch.Tensor) -> torch.Tensor:
    """The successor of each line in a cycle that visits all lines in this order."""
    after = torch.empty_like(order)
    after[order] = order.roll(-1)
    return after


def _kernels() -> dict[str, Any]:
    """The kernels by name, for the current device and torch's default stream, with the largest L1 that an SM allows."""
    import cupy

    module = cupy.RawModule(code=KERNELS.read_text(), options=OPTIONS)
    functions = {name: module.get_function(name) for name in ("read_set", "write_set", "copy_set", "chase")}
    for function in functions.values():
        function.preferred_shared_memory_carveout = 0
    return functions


def transfers(device: str) -> dict[str, Curve]:
    """Between the host's memory and a GPU's, and between GPUs: name -> [bytes, bytes per second].

    The best of several tries each; wall time until the device is done.
    """
    rates = {}
    for way in ("host to device", "device to host"):
        for memory in ("pinned", "pageable"):
            rates[f"{way}, {memory}"] = [[size, _host_rate(device, way, memory, size)] for size in TRANSFERS]
    index, count = torch.device(device).index or 0, torch.cuda.device_count()
    for other in (number for number in range(count) if number != index):
        name = f"cuda:{other}"
        rates[f"cuda:{index} to {name}"] = [[size, peer_rate(device, name, size)] for size in TRANSFERS]
    return rates


def _host_rate(device: str, way: str, memory: str, size: int) -> float:
    host = torch.zeros(size, dtype=torch.uint8, pin_memory=memory == "pinned")
    there = torch.zeros(size, dtype=torch.uint8, device=device)
    target, source = (there, host) if way == "host to device" else (host, there)
    return size / best_seconds(partial(target.copy_, source, non_blocking=True), device, "wall")
