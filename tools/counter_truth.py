"""Exact counts beside a GPU's counters: agreement, the kinds of differences, the error of the model of the L2.

An L1 counter counts the different sectors of each instruction of a warp. `common.traffic` counts those of each
instruction of a program, which all its warps execute together. So the counter finds more if another warp, or the same
warp's next instruction, touches a sector again.
"""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.record.files import Format, file_of_device, write_text

SCHEMA = 1
FILE = "traffic.json"
NEAR = 0.01  # relative to all counted sectors: within this a counter agrees
WARP, PARTS = 32, 8  # lanes of a warp; words of 4 bytes in a sector, which instructions may request one by one
WAYS = {  # kind of access -> L1 counters, to be summed; cp.async counts as a load
    "load": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
    "store": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
    "atomic": (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    ),
    "TMA load": ("l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",),
    "TMA store": ("l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",),
}
L2_READ, L2_WRITTEN = "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_write.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
GRID, THREADS = "launch__grid_size", "launch__block_size"
OCCUPANCY = tuple(f"launch__occupancy_limit_{by}" for by in ("blocks", "registers", "shared_mem", "warps"))
FIXED = (THREADS, *OCCUPANCY)  # properties of a kernel: not summed over launches
METRICS = (*(name for names in WAYS.values() for name in names), L2_READ, L2_WRITTEN, READ, WRITTEN, GRID, *FIXED)

AGREES, ANOTHER, TMA = "agrees", "another launch", "TMA, no counter"
RELOADED, PARTIAL, UNEXPLAINED = "reloaded", "partial writes", "unexplained"
MEANINGS = {
    AGREES: f"every kind of access within {NEAR:.0%} of all sectors",
    RELOADED: "loads: another warp, or the next instruction of the same one, touches the sector again",
    PARTIAL: "stores: a sector is written in parts",
    TMA: "descriptors, and this GPU has no counter for what they move",
    ANOTHER: "the GPU launched other programs than were counted",
    UNEXPLAINED: "none of these",
}


@dataclass(frozen=True)
class ComparedKernel:
    """A kernel of a version: all its launches in one call. `size`: the arguments of the pair's `inputs`.

    `counted`: launches, programs, sectors by kind of access, different bytes read and written, and bytes that models of
    the L2 read and moved. `counters`: those of Nsight Compute; a counter that this GPU lacks is missing.
    """

    pair: str
    version: str
    size: dict[str, Any]
    kernel: str
    counted: dict[str, int]
    counters: dict[str, float]

    @property
    def sectors(self) -> int:
        """The counted sectors of all kinds."""
        return sum(self.counted.get(way, 0) for way in WAYS)

    @property
    def touched_bytes(self) -> int:
        """The different bytes read or written."""
        return self.counted["read bytes"] + self.counted["written bytes"]

    def counter_sectors(self, way: str) -> float:
        """The counters' sectors of one kind of access."""
        return sum(self.counters.get(name, 0.0) for name in WAYS[way])

    @property
    def off(self) -> dict[str, float]:
        """Kind of access -> surplus of the counters over the counts, relative to all counted sectors."""
        return {way: (self.counter_sectors(way) - self.counted.get(way, 0)) / max(self.sectors, 1) for way in WAYS}

    @property
    def is_exact(self) -> bool:
        """Whether the counters agree to the last sector."""
        return all(self.counter_sectors(way) == self.counted.get(way, 0) for way in WAYS)

    @property
    def agreement(self) -> str:
        """Whether the counters agree, or the kind of difference; computed from the figures."""
        if self.counters[GRID] != self.counted["programs"]:
            return ANOTHER
        far = {way for way, off in self.off.items() if abs(off) > NEAR}
        if any(name not in self.counters for way in far for name in WAYS[way] if way.startswith("TMA")):
            return TMA
        kinds = {"load": RELOADED, "store": PARTIAL}
        most = max(self.counters[THREADS] / WARP, PARTS)  # how often one instruction may touch a sector
        times = {way: self.counter_sectors(way) / max(self.counted.get(way, 0), 1) for way in far}
        if any(way not in kinds or not 1 < times[way] <= most for way in far):
            return UNEXPLAINED
        return next((kind for way, kind in kinds.items() if way in far), AGREES)

    def model_off(self, model: str) -> float | None:
        """The relative error of a model's bytes read from memory; None if the GPU's bytes are unknown or 0."""
        read = self.counters.get(READ)
        return self.counted[f"read, {model}"] / read - 1 if read else None


@dataclass(frozen=True)
class Truth:
    """All comparisons. `kernels`: in the course's order. `missing`: counters that this GPU or Nsight Compute lacks.

    `left_out`: versions ("ch2/tensor_cores optimized/bf16") that could not be run or counted, with reasons.
    """

    schema: int
    environment: dict[str, Any]  # device: see common.machine.device.describe; versions, with ncu's; date
    kernels: list[ComparedKernel]
    missing: list[str]
    left_out: dict[str, str]

    @property
    def classes(self) -> Counter[str]:
        """The number of kernels in each class."""
        return Counter(kernel.agreement for kernel in self.kernels)


def _validate(truth: Truth) -> Truth:
    """The comparison, unless it contradicts itself. Raises an error about a missing value."""
    environment = truth.environment
    if not (environment["device"]["name"] and environment["date"] and environment["device"]["cache_bytes"] > 0):
        raise ValueError("the device lacks a name, a date or an L2")
    if wrong := next((kernel.pair for kernel in truth.kernels if not kernel.agreement or kernel.touched_bytes < 0), ""):
        raise ValueError(f"{wrong}: negative bytes")
    return truth


FORMAT = Format("a comparison with a GPU's counters", SCHEMA, Truth, _validate)


def keep(truth: Truth, folder: Path | None = None) -> Path:
    """Save as recorded/<device>/traffic.json, one line per kernel. Raises RecordError."""
    lines = ",\n".join(json.dumps(asdict(kernel), allow_nan=False) for kernel in truth.kernels)
    rest = json.dumps({**asdict(truth), "kernels": []}, indent=1, allow_nan=False)
    path = file_of_device(truth.environment, FILE, folder)
    write_text(path, rest.replace('"kernels": []', f'"kernels": [\n{lines}\n ]') + "\n")
    return path
