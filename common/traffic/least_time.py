"""The least time of a traffic on a named GPU, computed as by hand.

Kernels run one after the other. Each takes as long as the slowest of its parts: distinct bytes at memory's bandwidth,
sectors at L2's bandwidth, products at their peak. Each launch adds a few microseconds. Copies between host and device
may run at the same time; on the wall clock, also the host that issues launches: the longest of these counts. Not
included: latency, occupancy, atomic operations that wait for each other, and data that a library's kernel moves beyond
its operands.
"""

from dataclasses import dataclass, field

from common.traffic.data import SECTOR, Kernel, Traffic


@dataclass(frozen=True)
class Rates:
    """A GPU's rates per second: bytes of its memory, bytes read from and written to its L2, FLOPs and copied bytes.

    FLOPs and copies are by cost key (`fp32_flops`, `h2d_bytes`). `launch_s`: the time that a launch adds; `issue_s`:
    the host's time to issue a launch from Python. `source`: the origin of the rates. The L2's rates are None if they
    were not measured; L2 is then no limit.
    """

    name: str
    memory: float
    per_key: dict[str, float]
    launch_s: float
    issue_s: float
    l2_read: float | None = None
    l2_write: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Prediction:
    """A predicted time. `parts`: seconds by what is waited for ("memory", "L2", "tf32", "launches", "h2d", "host")."""

    seconds: float
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """The part that takes the most time."""
        return max(self.parts, key=self.parts.__getitem__, default="")


def predict_time(traffic: Traffic, rates: Rates, is_wall: bool = False) -> Prediction | None:
    """The least time. `is_wall`: on the wall clock, with the host's work.

    None if a rate is missing: a precision that this GPU lacks, or a link that was not measured.
    """
    if {*traffic.flops, *traffic.copied} - rates.per_key.keys():
        return None
    parts: dict[str, float] = {}
    for kernel in traffic.kernels:
        name, seconds = max(_part_times(kernel, rates).items(), key=lambda item: item[1])
        parts[name] = parts.get(name, 0.0) + seconds
    parts["launches"] = traffic.launches * rates.launch_s
    concurrent = {key.removesuffix("_bytes"): n / rates.per_key[key] for key, n in traffic.copied.items()}
    if is_wall:
        concurrent["host"] = traffic.launches * rates.issue_s
    all_parts = {name: part for name, part in {**parts, **concurrent}.items() if part}
    return Prediction(max(sum(parts.values()), *concurrent.values(), 0.0), all_parts)


def _part_times(kernel: Kernel, rates: Rates) -> dict[str, float]:
    """Seconds of each part of a kernel, as if it were the only one."""
    needs = {"memory": kernel.distinct_bytes / rates.memory}
    if rates.l2_read and rates.l2_write:
        needs["L2"] = SECTOR * (kernel.read_sectors / rates.l2_read + kernel.written_sectors / rates.l2_write)
    return needs | {key.removesuffix("_flops"): n / rates.per_key[key] for key, n in kernel.flops.items()}
