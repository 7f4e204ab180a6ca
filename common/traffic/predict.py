"""The time that a traffic takes at least on a named GPU, as one would work it out with a pencil.

Kernels run one after the other. Each takes as long as the slowest of its parts: its distinct bytes at the memory's
rate, its sectors at the L2's, its products at their peak. Each launch costs a few microseconds more. Copies between
host and device may run beside all that, and so may, on the wall clock, the host that issues the launches: the longest
counts. What a pencil leaves out: latency, occupancy, atomics that wait for each other, and what a library's kernel
moves beyond the shapes of its tensors.
"""

from dataclasses import dataclass, field

from common.traffic.data import SECTOR, Kernel, Traffic


@dataclass(frozen=True)
class Rates:
    """What a GPU does in a second: bytes of its memory, bytes read from and written to its L2, FLOPs and copied bytes
    by cost key (`fp32_flops`, `h2d_bytes`). `launch_s`: what a launch takes besides; `issue_s`: what it takes the host
    to issue one from Python. `source`: where they come from.

    The L2's are None where nobody has measured them, and are then taken for no limit.
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
    """`parts`: the seconds of what is waited for, by its name ("memory", "L2", "tf32", "launches", "h2d", "host")."""

    seconds: float
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def by(self) -> str:
        """What takes most of the time."""
        return max(self.parts, key=self.parts.__getitem__, default="")


def predicted(traffic: Traffic, rates: Rates, is_wall: bool = False) -> Prediction | None:
    """`is_wall`: timed on the wall clock, with all that the host does.

    None where a rate is missing: a precision that this GPU does not have, a link that was not measured.
    """
    if {*traffic.flops, *traffic.copied} - rates.per_key.keys():
        return None
    parts: dict[str, float] = {}
    for kernel in traffic.kernels:
        name, seconds = max(_needs(kernel, rates).items(), key=lambda item: item[1])
        parts[name] = parts.get(name, 0.0) + seconds
    parts["launches"] = traffic.launches * rates.launch_s
    beside = {key.removesuffix("_bytes"): n / rates.per_key[key] for key, n in traffic.copied.items()}
    if is_wall:
        beside["host"] = traffic.launches * rates.issue_s
    all_parts = {name: part for name, part in {**parts, **beside}.items() if part}
    return Prediction(max(sum(parts.values()), *beside.values(), 0.0), all_parts)


def _needs(kernel: Kernel, rates: Rates) -> dict[str, float]:
    """Seconds by what they are spent on, each as if it were all."""
    needs = {"memory": kernel.distinct_bytes / rates.memory}
    if rates.l2_read and rates.l2_write:
        needs["L2"] = SECTOR * (kernel.read_sectors / rates.l2_read + kernel.written_sectors / rates.l2_write)
    return needs | {key.removesuffix("_flops"): n / rates.per_key[key] for key, n in kernel.flops.items()}
