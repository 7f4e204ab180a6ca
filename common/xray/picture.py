"""A picture of every version on every architecture: captured, compiled and dissected in a process of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from common.isolation import process
from common.pairs.contract import Version
from common.pairs.one_line import OneLine
from common.pairs.pair import Pair
from common.xray.occupancy import ARCHITECTURES, MACHINES


@dataclass(frozen=True)
class Picture:
    """A version's kernels on an architecture (common.xray.sass.Anatomy), or why there are none to see."""

    label: str
    architecture: str
    kernels: list = field(default_factory=list)
    reason: str = ""
    failed: bool = False  # its kernel does not compile, or it takes its process down


def xray(pair: Pair, architectures: Sequence[str] = ARCHITECTURES, size: str = "default") -> list[Picture]:
    """A picture of each version on each architecture. Each is run, on tensors without memory, in its own process."""
    pictures = []
    for version in pair.versions:
        reason = "launches library kernels only: there is no code of its own to see"
        if version.has_kernel:
            try:
                pictures += process.call(_look_into, version, pair.sizes[size], tuple(architectures))
                continue
            except process.Death as death:
                reason = str(death)
        pictures += [Picture(version.label, each, [], reason, version.has_kernel) for each in architectures]
    return pictures


def _look_into(version: Version, size: dict, wanted: Sequence[str], say: Callable[[str, float], None]) -> list[Picture]:
    from common.xray import capture, compilers, sass  # heavy: torch

    pictures = []
    needs = tuple(version.constants.get("REQUIRES", {}).get("capability", (0, 0)))
    for number, architecture in enumerate(wanted):
        say(architecture, number / len(wanted))
        machine, kernels, reason, failed = MACHINES[architecture], [], "", False
        if machine.capability < needs:
            reason = f"needs compute capability {'.'.join(map(str, needs))}"
        else:
            try:
                launches = capture.launches(version.path, size, machine)
                kernels = [sass.dissect(compilers.compile_for(launch, machine), machine) for launch in launches]
                reason = "" if kernels else "launches no kernel of its own: its operations are torch's"
            except OneLine as error:
                reason, failed = str(error), isinstance(error, compilers.CompileError)
        pictures.append(Picture(version.label, architecture, kernels, reason, failed))
    return pictures
