"""A CPU's part of the sheet: its limits, reads by working set, and the four loops of STREAM on arrays above its caches.

Working on small arrays one by one would measure calls. So one call of torch takes the largest value of each row of a
matrix whose rows are all the same bytes (their stride is 0): each thread reads the same working set again and again.
(In a set above all caches each thread has a part of its own, or one would find there what another has just fetched.)
Of all operations this one computes least per byte; in L1 and L2 even its comparisons may be slower than the cache, so
that what is found there is what a program reaches rather than what the cache could do.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from common.hardware.facts import cpu_facts
from common.hardware.levels import levels, working_sets
from common.machine.device import cpu_caches, free_bytes
from common.machine.limits import best, measure_limits

SMALLEST, LARGEST = 8 << 10, 256 << 20  # bytes: within any L1; the largest is 8 x the last cache where that is more
MOVED = 256 << 20  # bytes of a call: a call costs microseconds, this takes milliseconds
UNKNOWN_CACHE = 64 << 20  # where the system does not tell


def measure_cpu(info: dict[str, Any], say: Callable[[str, float], None]) -> dict[str, Any]:
    """All of a sheet but its environment, in some seconds."""
    say("limits", 0.1)
    limits = {key: asdict(limit) for key, limit in measure_limits("cpu").items()}
    last_cache = info["cache_bytes"] or UNKNOWN_CACHE
    room = (free_bytes("cpu") or 2 << 30) // 4
    say("bandwidth", 0.4)
    bandwidth = {"read": read_curve(min(room, max(LARGEST, 8 * last_cache)), last_cache, info["threads"])}
    bandwidth |= stream(min(room // 3, 4 * last_cache) // 4)
    inside = {name: size for name, (size, _) in cpu_caches().items()}
    return {
        "facts": cpu_facts(info), "limits": limits, "bandwidth": bandwidth, "latency": [],
        "levels": levels(inside, {"read": bandwidth["read"]}, []), "transfers": {}, "links": [],
    }  # fmt: skip


def read_curve(most: int, last_cache: int, threads: int) -> list[list[float]]:
    """[working set, bytes per second that all threads read together], the best of a few each."""
    sets = working_sets(SMALLEST, most)
    return [[size, _read_rate(size, threads, threads if size > last_cache else 1)] for size in sets]


def _read_rate(size: int, threads: int, parts: int) -> float:
    """Of a set in one part, which all threads read, or in a part for each."""
    rows = -(-MOVED * parts // (threads * size)) * threads // parts  # of each part, so that every thread gets as many
    part = size // parts
    matrix = torch.ones(parts, 1, part, dtype=torch.int8).expand(parts, rows, part)
    return parts * rows * part / best(partial(torch.amax, matrix, dim=2), "cpu", "wall")


def stream(n: int) -> dict[str, list[list[float]]]:
    """McCalpin's four loops over vectors of n float32: [bytes of the vectors used, bytes per second], one point each.

    Counted is what the loop names, reads and writes; that a CPU may read a line before it writes to it is not.
    """
    a, b, c = (torch.ones(n) for _ in range(3))
    vector = a.nbytes
    loops: dict[str, tuple[int, Callable[[], Any]]] = {
        "copy": (2 * vector, partial(torch.Tensor.copy_, c, a)),
        "scale": (2 * vector, partial(torch.mul, c, 3.0, out=b)),
        "add": (3 * vector, partial(torch.add, a, b, out=c)),
        "triad": (3 * vector, partial(torch.add, b, c, alpha=3.0, out=a)),
    }
    return {name: [[size, size / best(loop, "cpu", "wall")]] for name, (size, loop) in loops.items()}
