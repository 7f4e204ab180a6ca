"""Memory traffic as data, by kernel."""

from dataclasses import dataclass, field, fields
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Addresses = NDArray[np.uint64]  # of the lanes of one access
Mask = NDArray[np.bool_]
SECTOR = 32  # bytes: the least that moves between a GPU's caches and its memory


@dataclass(frozen=True)
class Access:
    """A load, a store or an atomic operation (`kind`) of one program: the addresses of its lanes, and the active lanes.

    `launch`, `program`: numbers from 0, in the interpreter's order: a GPU's order on a grid of one axis, otherwise the
    last axis first. `addresses`: of `size` bytes each.
    """

    launch: int
    program: int
    kind: str
    addresses: Addresses
    mask: Mask
    size: int


@dataclass(frozen=True)
class Kernel:
    """All launches of one kernel, or all calls of one torch operation.

    `read_bytes`, `written_bytes`: requested by unmasked lanes. `read_sectors`, `written_sectors`: for each load or
    store of each program its different sectors of 32 bytes, summed; at least these cross to L1. `distinct_bytes`: for
    each launch the different sectors read plus those written, in bytes; memory has to move them once. `lanes`: of all
    loads and stores; `masked` of them do nothing. `atomics`: lanes of atomic operations, whose sectors are both read
    and written; `max_atomics_per_address`: the most of one launch that use the same address. `flops`: by precision
    (`fp16_flops`), of `tl.dot` and of torch's products. `through_tma`: sectors of descriptors. `working`: the programs
    that load and store at least a quarter of the bytes that a program of their launch does on average.
    """

    name: str
    launches: int = 0
    programs: int = 0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    read_sectors: float = 0.0
    written_sectors: float = 0.0
    distinct_bytes: float = 0.0
    lanes: float = 0.0
    masked: float = 0.0
    atomics: float = 0.0
    max_atomics_per_address: float = 0.0
    through_tma: float = 0.0
    working: float = 0.0
    flops: dict[str, float] = field(default_factory=dict)

    def __add__(self, other: "Kernel") -> "Kernel":
        """The sum of both; `max_atomics_per_address` is the larger one."""
        flops = {key: self.flops.get(key, 0.0) + other.flops.get(key, 0.0) for key in {**self.flops, **other.flops}}
        sums = {name: getattr(self, name) + getattr(other, name) for name in SUMS}
        most = max(self.max_atomics_per_address, other.max_atomics_per_address)
        return Kernel(self.name, **sums, max_atomics_per_address=most, flops=flops)

    def times(self, by: float) -> "Kernel":
        """The counts times `by`; `max_atomics_per_address` stays."""
        sums = {name: by * getattr(self, name) for name in SUMS}
        flops = {key: by * n for key, n in self.flops.items()}
        return Kernel(self.name, **sums, max_atomics_per_address=self.max_atomics_per_address, flops=flops)


NOT_SUMMED = ("name", "max_atomics_per_address", "flops")
SUMS = [count_field.name for count_field in fields(Kernel) if count_field.name not in NOT_SUMMED]


@dataclass(frozen=True)
class Traffic:
    """The memory traffic of a call. `kernels`: in the order of their first launch.

    `copied`: bytes between host and device, by `h2d_bytes` and `d2h_bytes`. `allocated_bytes`: bytes of new arrays;
    `peak_bytes`: the most of these at the same time. `error`: the standard error of `sectors`, relative to them, if
    programs were sampled, otherwise 0. `dram_bytes`: memory traffic behind a modelled L2 of `l2_bytes`; None without a
    model.
    """

    kernels: tuple[Kernel, ...]
    copied: dict[str, float] = field(default_factory=dict)
    allocated_bytes: float = 0.0
    error: float = 0.0
    dram_bytes: float | None = None
    l2_bytes: int | None = None
    peak_bytes: float = 0.0

    @property
    def total(self) -> Kernel:
        return reduce(Kernel.__add__, self.kernels, Kernel("all"))

    @property
    def launches(self) -> int:
        return self.total.launches

    @property
    def programs(self) -> int:
        return self.total.programs

    @property
    def requested_bytes(self) -> float:
        return self.total.read_bytes + self.total.written_bytes

    @property
    def sectors(self) -> float:
        return self.total.read_sectors + self.total.written_sectors

    @property
    def sector_bytes(self) -> float:
        return SECTOR * self.sectors

    @property
    def distinct_bytes(self) -> float:
        return self.total.distinct_bytes

    @property
    def flops(self) -> dict[str, float]:
        return self.total.flops
