"""The GPU that the notebooks compute with: this machine's, or the one recorded last, or one from its datasheet."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from common.hardware import sheet as sheets
from common.machine.device import datasheet, default_device, has_gpu
from common.show.formats import bandwidth, binary, tflops
from common.show.tables import origin
from common.xray.occupancy import MACHINES

ASSUMED = "H200: the datasheet's rates, with assumed caches and latencies"


@dataclass(frozen=True)
class Gpu:
    """A GPU's rates per second. `l1_bytes`: of one SM; `l1_read`: of all SMs together."""

    sheet: sheets.Sheet | None  # None: nothing was measured
    source: str
    limits: dict[str, Any]  # as in a record
    arch: str = "sm_90"
    sms: int = 132
    l1_bytes: int = 256 << 10
    l2_bytes: int = 60 << 20
    l1_read: float = 30e12
    l2_read: float = 9e12
    l2_copy: float = 9e12
    l2_latency_s: float = 150e-9
    dram_latency_s: float = 350e-9
    clock_hz: float = 1.9e9

    @property
    def copied(self) -> float:
        """Bytes per second that a copy reads and writes."""
        return float(self.limits["dram_bytes"]["measured"])

    @property
    def fp16_rate(self) -> float:
        """FLOP/s of float16 matrix products."""
        return float(self.limits["fp16_flops"]["measured"])

    def __str__(self) -> str:
        here = "an NVIDIA GPU" if has_gpu() else "no NVIDIA GPU: you see results recorded on one"
        moves = f"a copy moves {bandwidth(self.copied)}, L2 delivers {bandwidth(self.l2_read)}"
        computes = f"{self.sms} SMs compute {tflops(self.fp16_rate)} in float16 products"
        return f"this machine has {here}\n{self.source}: {computes},\n{moves} and holds {binary(self.l2_bytes)}"


@cache
def gpu() -> Gpu:
    """The notebooks' GPU. Raises RecordError, DeviceError."""
    sheet = sheets.cached_or_measured(default_device()) if has_gpu() else sheets.recorded_sheet()
    if sheet is None:
        peaks = datasheet("NVIDIA H200")[0]
        return Gpu(None, ASSUMED, {key: {"measured": peak, "datasheet": peak} for key, peak in peaks.items()})
    values, held, (l1, l2, dram) = sheet.values, sheet.caches, (sheet.levels[name] for name in ("L1", "L2", "DRAM"))
    arch = "sm_" + values["compute capability"].replace(".", "")
    return Gpu(
        sheet, origin(sheet), sheet.limits, arch if arch in MACHINES else Gpu.arch, values["streaming multiprocessors"],
        held["L1"], held["L2"], l1["read"], l2["read"], l2["copy"], l2["seconds"], dram["seconds"],
        l2["cycles"] / l2["seconds"],
    )  # fmt: skip
