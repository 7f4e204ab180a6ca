"""Working sets to measure, and the levels of the memory hierarchy that a measured curve shows."""

from typing import Any

Curve = list[list[float]]
Levels = dict[str, dict[str, Any]]


def working_sets(least: int, most: int, unit: int = 1) -> list[int]:
    """Multiples of `unit` bytes, two per doubling: least, 1.5 x least, 2 x least, 3 x least, ... up to `most`."""
    sizes = []
    while least <= most:
        sizes += [size for size in (least, least * 3 // 2) if size <= most and size % unit == 0]
        least *= 2
    return sizes


def levels(capacities: dict[str, int], bandwidth: dict[str, Curve], latency: Curve) -> Levels:
    """The figures of each level, at a working set that certainly lies in it. A level without such a set is left out.

    For a cache this is the largest set of at most half its capacity that no smaller cache can hold. For DRAM it is the
    largest set, if that is 8 times the last cache. Only sets with a measured read rate (and latency, if there is one)
    count. `capacities`: bytes by name, ascending.
    """
    curves = {kind: {int(size): rate for size, rate in points} for kind, points in bandwidth.items()}
    delays = {int(size): {"cycles": cycles, "seconds": seconds} for size, cycles, seconds in latency}
    sets = sorted(size for size in curves["read"] if not delays or size in delays)
    chosen: dict[str, int] = {}
    inside = 0
    for name, capacity in capacities.items():
        if fitting := [size for size in sets if inside < size <= capacity // 2]:
            chosen[name] = fitting[-1]
        inside = capacity
    if sets and sets[-1] >= 8 * inside:
        chosen["DRAM"] = sets[-1]
    return {
        name: {"bytes": size, **{kind: points[size] for kind, points in curves.items() if size in points}}
        | delays.get(size, {})
        for name, size in chosen.items()
    }
