"""A picture of every version on every architecture: captured, compiled and dissected in a process of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from common.isolation import process
from common.pairs.contract import OneLine, Version
from common.pairs.pair import Pair
from common.xray.occupancy import ARCHITECTURES


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
        if not version.has_kernel:
            reason = "launches library kernels only: there is no code of its own to see"
            pictures += [Picture(version.label, architecture, reason=reason) for architecture in architectures]
            continue
        try:
            pictures += process.call(_look_into, version, pair.sizes[size], tuple(architectures))
        except process.Death as death:
            pictures += [Picture(version.label, each, reason=str(death), failed=True) for each in architectures]
    return pictures


def _look_into(
    version: Version, size: dict, architectures: Sequence[str], say: Callable[[str, float], None]
) -> list[Picture]:
    from common.xray.capture import launches
    from common.xray.compilers import CompileError, compile_for
    from common.xray.occupancy import MACHINES
    from common.xray.sass import dissect

    pictures = []
    needs = tuple(version.constants.get("REQUIRES", {}).get("capability", (0, 0)))
    for number, architecture in enumerate(architectures):
        say(architecture, number / len(architectures))
        machine = MACHINES[architecture]
        if machine.capability < needs:
            reason = f"needs compute capability {'.'.join(map(str, needs))}"
            pictures.append(Picture(version.label, architecture, reason=reason))
            continue
        try:
            kernels = [
                dissect(compile_for(launch, machine), machine) for launch in launches(version.path, size, machine)
            ]
            reason = "" if kernels else "launches no kernel of its own: its operations are torch's"
            pictures.append(Picture(version.label, architecture, kernels, reason))
        except OneLine as error:
            pictures.append(
                Picture(version.label, architecture, reason=str(error), failed=isinstance(error, CompileError))
            )
    return pictures
