"""The launches for which exact counts are compared with a GPU's counters, and how they are counted.

They are counted on the CPU with the launches that the version would make on that GPU, and with empty caches before each
launch, as a profiler sees them.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from common.pairs.pair import ROOT, discover, load
from common.traffic.data import SECTOR, Addresses, Mask
from common.traffic.l2_model import L2
from common.traffic.meter import Meter, unique_sectors
from common.xray.occupancy import MACHINES, Machine

PAIRS = {  # at their size `count`
    "ch1": "coalescing",
    "ch2": "tensor_cores transpose",
    "ch3": "add data_movement dropout elementwise layer_norm layer_norm_backward reduction reductions rms_norm softmax "
    "softmax_backward",
    "ch4": "attention batched_matmul matmul precision split_k tile_size",
    "ch5": "layout",
}
BEYOND_L2: dict[tuple[str, str], dict[str, Any]] = {  # more bytes than an L2 holds: these test the model of the L2
    ("ch3/layer_norm", "baseline"): {"rows": 1056, "columns": 16_384},
    ("ch3/softmax", "baseline"): {"rows": 528, "columns": 65_536},
    ("ch3/softmax", "optimized/online"): {"rows": 528, "columns": 65_536},
    ("ch4/matmul", "optimized/tile"): {"m": 4096, "n": 4096, "k": 4096},
    ("ch4/matmul", "optimized/grouped"): {"m": 4096, "n": 4096, "k": 4096},
}
SEED = 0
PER_SM, RESIDENT, HALF = "a program an SM", "all resident", "all resident, half the L2"
MODELS = (PER_SM, RESIDENT, HALF)  # how many programs run in step; data used by all SMs may be in the L2 twice


@dataclass(frozen=True)
class ChosenVersion:
    """A version of a pair ("ch3/softmax") at a size, given by the arguments of its `inputs`."""

    pair: str
    version: str
    file: str
    size: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.pair} {self.version}"

    @property
    def is_beyond_l2(self) -> bool:
        return BEYOND_L2.get((self.pair, self.version)) == self.size

    def load_with_inputs(self, device: str) -> Any:
        """(Its module, its inputs); the inputs are equal each time."""
        import torch

        torch.manual_seed(SEED)
        module = load(ROOT / self.file)
        return module, module.inputs(**self.size, device=device)


def call_of(module: Any, inputs: dict[str, Any]) -> Any:
    """A call of `run` after `setup`."""
    return partial(module.run, **inputs, **(module.setup(**inputs) if hasattr(module, "setup") else {}))


def choose_versions(only: str = "*") -> list[ChosenVersion]:
    """All versions with a Triton kernel in pairs whose names match; the slowest first."""
    versions = []
    for chapter, names in PAIRS.items():
        pairs = [pair for pair in discover(ROOT / chapter) if pair.name in names.split()]
        for pair in (pair for pair in pairs if fnmatchcase(pair.name, only)):
            for version in (
                version for version in pair.versions if "triton" in version.imports and not version.is_gluon
            ):
                name, file = f"{chapter}/{pair.name}", str(version.path.relative_to(ROOT))
                sizes = pair.sizes["count"], BEYOND_L2.get((name, version.label))
                versions += [ChosenVersion(name, version.label, file, size) for size in sizes if size]
    return sorted(versions, key=lambda version: not version.is_beyond_l2)


class ColdMeter(Meter):
    """Counts by kernel: launches, programs, sectors by kind of access, bytes, reads and traffic of L2 models.

    The models are empty before each launch. `resident`: programs of each kernel that an SM holds.
    """

    def __init__(self, machine: Machine, resident: dict[str, int]) -> None:
        super().__init__()
        self._machine, self._resident = machine, resident
        self._models: dict[str, L2] = {}
        self.counts: dict[str, Counter[str]] = {}

    def begin(self, name: str) -> None:
        super().begin(name)
        size, sms = self._machine.l2_bytes, self._machine.sms
        all_at_once = sms * self._resident.get(name, 1)
        self._models = {PER_SM: L2(size, sms), RESIDENT: L2(size, all_at_once), HALF: L2(size // 2, all_at_once)}
        self.counts.setdefault(name, Counter())["launches"] += 1

    def program(self) -> None:
        super().program()
        for model in self._models.values():
            model.program()

    def access(self, addresses: Addresses, mask: Mask, size: int, kind: str, tma: bool = False) -> None:
        super().access(addresses, mask, size, kind, tma)
        touched = unique_sectors(addresses[mask].reshape(-1) // SECTOR)
        self.counts[self._launch.kernel.name][f"TMA {kind}" if tma else kind] += touched.size
        for model in self._models.values():
            model.access(touched, kind != "store", kind != "load")

    def end(self) -> None:
        super().end()
        launch, kernel_counts = self._launch, self.counts[self._launch.kernel.name]
        kernel_counts["programs"] += int(launch.kernel.programs)
        kernel_counts["read bytes"] += SECTOR * launch.read.sectors.size
        kernel_counts["written bytes"] += SECTOR * launch.written.sectors.size
        for name, model in self._models.items():
            model.drain()
            kernel_counts[f"read, {name}"] += int(model.read_bytes)
            kernel_counts[f"moved, {name}"] += int(model.dram_bytes)


def machine_of(device: dict[str, Any]) -> Machine:
    """The architecture of a GPU described by common.machine.device."""
    architecture = MACHINES["sm_{}{}".format(*device["capability"])]
    return replace(architecture, name=device["name"], sms=device["sms"], l2_bytes=device["cache_bytes"])


def count_version(machine: Machine, version: ChosenVersion, resident: dict[str, int]) -> dict[str, dict[str, int]]:
    """The counts of one call, by kernel. `resident`: programs of each kernel that an SM holds."""
    from common.traffic import triton_hooks

    module, inputs = version.load_with_inputs("cpu")
    meter = ColdMeter(machine, resident)
    with _as_if_on(machine):
        call = call_of(module, inputs)
        with triton_hooks.interpreter_hooks(
            meter, is_real=not version.is_beyond_l2
        ):  # no address depends on a loaded value
            call()
    return {name: dict(kernel_counts) for name, kernel_counts in meter.counts.items()}


@contextmanager
def _as_if_on(machine: Machine) -> Iterator[None]:
    """Inside, a version chooses its launches as on that GPU, although its tensors lie on the CPU."""
    from unittest.mock import patch

    import torch

    from common.xray.capture import as_if_on

    with as_if_on(machine), patch.object(torch.Tensor, "is_cpu", property(lambda _: False)):
        yield
