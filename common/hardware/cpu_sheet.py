"""A CPU's part of the sheet: limits, reads by working set, and the four loops of STREAM.

Work on small arrays one by one would measure the cost of calls. So one torch call computes the largest value of each
row of a matrix whose rows are all the same bytes (stride 0): each thread reads the same working set repeatedly. A set
above all caches has a part for each thread; otherwise a thread would find in the cache what another one has just
loaded. This operation computes the least per byte. In L1 and L2 its comparisons may still be slower than the cache: the
result is what a program reaches, not what the cache could do.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from common.hardware.facts import cpu_facts
from common.hardware.levels import levels, working_sets
from common.machine.device import cpu_caches, free_bytes
from common.machine.limits import best_seconds, measure_limits

SMALLEST, LARGEST = 8 << 10, 256 << 20  # bytes: fits any L1; 8 x the last cache, if that is larger
MOVED = 256 << 20  # bytes per call: a call costs microseconds, this takes milliseconds
UNKNOWN_CACHE = 64 << 20  # if the system does not report it


def measure_cpu(info: dict[str, Any], say: Callable[[str, float], None]) -> dict[str, Any]:
    """All of a sheet except its environment, in some seconds."""
    say("limits", 0.1)
    limits = {key: asdict(limit) for key, limit in measure_limits("cpu").items()}
    last_cache = info["cache_bytes"] or UNKNOWN_CACHE
    room = (free_bytes("cpu") or 2 << 30) // 4
    say("bandwidth", 0.4)
    sets, threads = working_sets(SMALLEST, min(room, max(LARGEST, 8 * last_cache))), info["threads"]
    bandwidth = {"read": [[size, read_rate(size, threads, threads if size > last_cache else 1)] for size in sets]}
    bandwidth |= stream(min(room // 3, 4 * last_cache) // 4)
    inside = {name: size for name, (size, _) in cpu_caches().items()}
    return {
        "facts": cpu_facts(info), "limits": limits, "bandwidth": bandwidth, "latency": [],
        "levels": levels(inside, {"read": bandwidth["read"]}, []), "transfers": {}, "links": [],
    }  # fmt: skip


def read_rate(size: int, threads: int, parts: int) -> float:
    """Bytes per second of a set in one part that all threads read, or in one part per thread: the best of several."""
    rows = -(-MOVED * parts // (threads * size)) * threads // parts  # of each part: equally many per thread
    part = size // parts
    matrix = torch.ones(parts, 1, part, dtype=torch.int8).expand(parts, rows, part)
    return parts * rows * part / best_seconds(partial(torch.amax, matrix, dim=2), "cpu", "wall")


def stream(n: int) -> dict[str, list[list[float]]]:
    """McCalpin's four loops over vectors of n float32: [bytes of the vectors used, bytes per second], one point each.

    Counted are the named reads and writes, not a line that a CPU reads before it writes to it.
    """
    a, b, c = (torch.ones(n) for _ in range(3))
    vector = a.nbytes
    loops: dict[str, tuple[int, Callable[[], Any]]] = {
        "copy": (2 * vector, partial(torch.Tensor.copy_, c, a)),
        "scale": (2 * vector, partial(torch.mul, c, 3.0, out=b)),
        "add": (3 * vector, partial(torch.add, a, b, out=c)),
        "triad": (3 * vector, partial(torch.add, b, c, alpha=3.0, out=a)),
    }
    return {name: [[size, size / best_seconds(loop, "cpu", "wall")]] for name, (size, loop) in loops.items()}
