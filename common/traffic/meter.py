"""The meter that collects counts while a program runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from common.traffic.data import SECTOR, Access, Addresses, Kernel, Mask, Traffic
from common.traffic.l2_model import L2

SHARE = 0.25  # of what a launch's programs move on average: a program that moves less does not share the work
COMPACT = 1 << 21  # sectors that are kept before duplicates are removed
Sectors = Addresses  # their numbers: addresses / SECTOR


class SectorSet:
    """The different sectors that a launch has touched."""

    def __init__(self) -> None:
        self._parts: list[Sectors] = []
        self._kept, self._most = 0, COMPACT

    def add(self, sectors: Sectors) -> None:
        self._parts.append(sectors)
        self._kept += sectors.size
        if self._kept > self._most:
            self._parts = [self.sectors]
            self._kept = self._parts[0].size
            self._most = 2 * max(self._kept, COMPACT)  # otherwise duplicates would be removed at every access

    @property
    def sectors(self) -> Sectors:
        return unique_sectors(np.concatenate(self._parts)) if self._parts else np.empty(0, np.uint64)


@dataclass
class Launch:
    """One launch while it runs: counts, places read and written, addresses of atomic operations."""

    kernel: Kernel
    read: SectorSet
    written: SectorSet
    atomic_addresses: list[Addresses]


def max_per_address(atomic_addresses: list[Addresses]) -> int:
    """How often the most frequent address occurs."""
    addresses = np.concatenate(atomic_addresses) if atomic_addresses else np.empty(0, np.uint64)
    return int(np.unique(addresses, return_counts=True)[1].max()) if addresses.size else 0


def unique_sectors(sectors: Sectors) -> Sectors:
    """The different sectors, in order. Most input is in order already, so sorting or hashing is rarely needed."""
    if sectors.size < 2:
        return sectors
    ordered = sectors if bool((sectors[1:] >= sectors[:-1]).all()) else np.sort(sectors)
    return ordered[np.r_[True, ordered[1:] != ordered[:-1]]]


def working_programs(bytes_of: Sequence[float]) -> int:
    """How many programs of a launch share its work, by the bytes that each one loads and stores."""
    least = SHARE * sum(bytes_of) / max(1, len(bytes_of))
    return sum(moved > 0 and moved >= least for moved in bytes_of)


class Meter:
    """Hooks of kernels and operations report here. `traffic` is complete at the end.

    `accesses`: a list that gets each access of each program, or None.
    """

    def __init__(self, l2: L2 | None = None, accesses: list[Access] | None = None) -> None:
        self._kernels: dict[str, Kernel] = {}
        self._copied: dict[str, float] = {}
        self._allocated = self._peak = self._variance = 0.0
        self._living: dict[Any, int] = {}  # bytes of new arrays
        self._accesses, self._launches = accesses, 0
        self._bytes_of = list[int]()  # of each program of the launch: requested
        self._l2, self._launch = l2, Launch(Kernel(""), SectorSet(), SectorSet(), [])

    def begin(self, name: str) -> None:
        self._launches += 1
        self._bytes_of = []
        self._launch = Launch(Kernel(name), SectorSet(), SectorSet(), [])

    def program(self) -> None:
        """Begin the next program of this launch."""
        self._launch.kernel = replace(self._launch.kernel, programs=self._launch.kernel.programs + 1)
        self._bytes_of.append(0)
        if self._l2:
            self._l2.program()

    def access(self, addresses: Addresses, mask: Mask, size: int, kind: str, tma: bool = False) -> None:
        """Count a load, store or atomic operation (`kind`) of a program. `addresses`: one per lane, `size` bytes each.

        `tma`: through a descriptor.
        """
        if self._accesses is not None:
            of = self._launches - 1, self._launch.kernel.programs - 1
            self._accesses.append(Access(*of, kind, addresses, mask, size))
        active = addresses[mask]
        touched = unique_sectors(active.reshape(-1) // SECTOR)
        reads, writes = (active.size * (kind in kinds) for kinds in (("load", "atomic"), ("store", "atomic")))
        self._launch.kernel += Kernel(
            "", read_bytes=size * reads, written_bytes=size * writes, read_sectors=touched.size * bool(reads),
            written_sectors=touched.size * bool(writes), lanes=mask.size, masked=mask.size - active.size,
            atomics=active.size * (kind == "atomic"), through_tma=touched.size * tma,
        )  # fmt: skip
        if self._bytes_of:  # else no program runs
            self._bytes_of[-1] += size * active.size
        for moves, places in ((reads, self._launch.read), (writes, self._launch.written)):
            if moves:
                places.add(touched)
        if kind == "atomic":
            self._launch.atomic_addresses.append(active.reshape(-1))
        if self._l2:
            self._l2.access(touched, bool(reads), bool(writes))

    def flops(self, precision: str, amount: float) -> None:
        self._launch.kernel += Kernel("", flops={f"{precision}_flops": amount})

    def end(self) -> None:
        """End a launch whose programs were all counted."""
        launch = self._launch
        distinct = SECTOR * (launch.read.sectors.size + launch.written.sectors.size)
        most = max_per_address(launch.atomic_addresses)
        counts = replace(launch.kernel, distinct_bytes=distinct, max_atomics_per_address=most)
        self.add(replace(counts, launches=1, working=working_programs(self._bytes_of)))
        if self._l2:
            self._l2.drain()

    def program_counts(self, read: SectorSet, written: SectorSet, atomic_addresses: list[Addresses]) -> Kernel:
        """The counts of one program, not of a launch. Its places are added to the given ones."""
        launch = self._launch
        atomic_addresses += launch.atomic_addresses
        read.add(launch.read.sectors)
        written.add(launch.written.sectors)
        return replace(launch.kernel, max_atomics_per_address=max_per_address(launch.atomic_addresses))

    def add(self, kernel: Kernel, variance: float = 0.0) -> None:
        """Add a whole launch or operation. `variance`: of its sectors, if programs were sampled."""
        earlier = self._kernels.get(kernel.name)
        self._kernels[kernel.name] = earlier + kernel if earlier else kernel
        self._variance += variance

    def copy(self, direction: str, amount: float) -> None:
        self._copied[direction] = self._copied.get(direction, 0.0) + amount

    def allocate(self, new: dict[Any, int]) -> None:
        """Add new arrays: a weak reference to their memory -> bytes."""
        self._allocated += sum(new.values())
        self._living |= new
        if sum(self._living.values()) > self._peak:  # assumes that everything made since the last look still exists
            self._living = {memory: size for memory, size in self._living.items() if not memory.expired()}
            self._peak = max(self._peak, sum(self._living.values()))

    @property
    def traffic(self) -> Traffic:
        traffic = Traffic(tuple(self._kernels.values()), dict(self._copied), self._allocated, peak_bytes=self._peak)
        error = self._variance**0.5 / traffic.sectors if traffic.sectors else 0.0
        l2: dict[str, Any] = {"dram_bytes": self._l2.dram_bytes, "l2_bytes": self._l2.size} if self._l2 else {}
        return replace(traffic, error=error, **l2)
