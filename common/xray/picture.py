"""A picture of every version on every architecture: captured, compiled and disassembled in a child process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from common.isolation import forkserver, worker
from common.pairs.contract import Version
from common.pairs.pair import Pair
from common.pairs.user_error import UserError
from common.xray.occupancy import ARCHITECTURES, MACHINES


@dataclass(frozen=True)
class Picture:
    """A version's kernels on an architecture (common.xray.sass.Anatomy), or the reason why there are none."""

    label: str
    architecture: str
    kernels: list = field(default_factory=list)
    reason: str = ""
    failed: bool = False  # by its own fault: its kernel does not compile, a name is missing, or it ends its process


def xray(pair: Pair, architectures: Sequence[str] = ARCHITECTURES, size: str = "default") -> list[Picture]:
    """A picture of each version on each architecture. Each runs in its own process, on tensors without memory."""
    forkserver.prefer("triton")
    pictures = []
    for version in pair.versions:
        reason = "launches only library kernels: it has no machine code of its own"
        if version.has_kernel:
            try:
                pictures += worker.call(_look_into, version, pair.sizes[size], tuple(architectures))
                continue
            except worker.ChildFailed as death:
                reason = str(death)
        pictures += [
            Picture(version.label, architecture, [], reason, version.has_kernel) for architecture in architectures
        ]
    return pictures


def _look_into(version: Version, size: dict, wanted: Sequence[str], say: Callable[[str, float], None]) -> list[Picture]:
    from common.xray import capture, compilers, sass  # a slow import: torch

    pictures = []
    for number, architecture in enumerate(wanted):
        say(architecture, number / len(wanted))
        machine, kernels, failed = MACHINES[architecture], [], False
        if not (reason := version.capability_needed(machine.capability)):
            try:
                launches = capture.launches(version.path, size, machine)
                kernels = [sass.anatomy(launch, machine) for launch in launches]
                reason = "" if kernels else "launches no kernel of its own, only torch operations"
            except UserError as error:
                reason, failed = str(error), isinstance(error, (compilers.CompileError, capture.FaultyVersion))
        pictures.append(Picture(version.label, architecture, kernels, reason, failed))
    return pictures
