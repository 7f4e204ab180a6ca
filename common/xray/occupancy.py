"""An SM's resources in each architecture, and theoretical occupancy for a kernel's resources.

Source: the table "Technical Specifications per Compute Capability" in NVIDIA's CUDA C++ Programming Guide. SMs and L2
are those of the named product, from its architecture's white paper.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

WARP = 32
REGISTERS_PER_SM = 65_536
PARTS = 4  # of an SM, each with its own warps and registers
REGISTER_UNIT = 256  # a warp gets registers in multiples of this
SYSTEM_SHARED_BYTES = 1024  # per block, from capability 8.0 on
SHARED_UNIT = 128  # bytes


@dataclass(frozen=True)
class Machine:
    """An architecture, represented by one product. Per SM: warps, blocks, bytes of shared memory."""

    architecture: str
    name: str
    sms: int
    l2_bytes: int
    warps: int
    blocks: int
    shared_bytes: int

    @property
    def capability(self) -> tuple[int, int]:
        digits = self.architecture.removeprefix("sm_")
        return int(digits[:-1]), int(digits[-1])

    @contextmanager
    def as_tritons_driver(self) -> Iterator[None]:
        """Inside, Triton compiles for this GPU."""
        from unittest.mock import patch  # a slow import, as the others

        import torch
        import triton
        from triton.backends.compiler import GPUTarget

        major, minor = self.capability
        driver: Any = SimpleNamespace(
            get_current_target=lambda: GPUTarget("cuda", 10 * major + minor, WARP),
            get_current_device=lambda: 10 * major + minor,  # Triton keeps compiled kernels by device
            get_current_stream=lambda device: 0,
            get_active_torch_device=lambda: torch.device("meta"),
            get_benchmarker=lambda: None,
            get_device_capability=lambda *_: self.capability,
        )
        with patch.object(triton.runtime.driver, "_active", driver):
            yield


MACHINES = {
    machine.architecture: machine
    for machine in (
        Machine("sm_75", "Tesla T4", 40, 4 << 20, 32, 16, 64 << 10),
        Machine("sm_80", "A100", 108, 40 << 20, 64, 32, 164 << 10),
        Machine("sm_86", "GeForce RTX 3090", 82, 6 << 20, 48, 16, 100 << 10),
        Machine("sm_89", "GeForce RTX 4090", 128, 72 << 20, 48, 24, 100 << 10),
        Machine("sm_90", "H100", 132, 50 << 20, 64, 32, 228 << 10),
        Machine("sm_100", "B200", 148, 126 << 20, 64, 32, 228 << 10),
        Machine("sm_120", "GeForce RTX 5090", 170, 96 << 20, 48, 24, 100 << 10),
    )
}
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")  # the default of --arch


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that an SM holds at once, the share of its maximum, and the limiting resources."""

    blocks: int
    warps: int
    share: float
    limited_by: str


def occupancy(machine: Machine, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of a kernel with these threads and bytes of shared memory per block, and registers per thread."""
    warps = _up(threads, WARP) // WARP
    per_warp = max(REGISTER_UNIT, _up(registers * WARP, REGISTER_UNIT))
    system_bytes = SYSTEM_SHARED_BYTES if machine.capability >= (8, 0) else 0
    room = {
        "warps": machine.warps // warps,
        "blocks": machine.blocks,
        "registers": REGISTERS_PER_SM // PARTS // per_warp * PARTS // warps,
        "shared memory": machine.shared_bytes // max(1, _up(shared_bytes + system_bytes, SHARED_UNIT)),
    }
    blocks = min(room.values())
    held = blocks * warps
    by = " and ".join(name for name in room if room[name] == blocks)
    return Occupancy(blocks, held, held / machine.warps, by)


def _up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
