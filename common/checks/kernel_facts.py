"""The machine code that a profiled call ran: each kernel's launches, and what it needs of the GPU.

The profiler names registers, warps and shared memory of every kernel, a library's too. Spills and instructions are read
from the binaries that Triton has loaded in this process.
"""

import gc
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from torch.autograd.profiler import profile

from common.xray.compilers import Binary
from common.xray.occupancy import WARP
from common.xray.sass import NoTools, instruction_counts

NAME = 80  # characters that are kept: the names of C++ templates have thousands
SPILL_BYTES = 4  # Triton counts registers


@contextmanager
def launched_binaries() -> Iterator[list[Any]]:
    """The kernels that Triton's launcher starts inside. It does not see those of a graph, or that Inductor starts."""
    binaries: list[Any] = []
    if "triton" not in sys.modules:
        yield binaries
        return
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def launch(self: Any, *arguments: Any, **options: Any) -> Any:
        binary = run(self, *arguments, **options)
        if binary is not None:  # a hook may keep it from being compiled
            binaries.append(binary)
        return binary

    with patch.object(JITFunction, "run", launch):
        yield binaries


def kernels_of(profiler: profile, binaries: Iterable[Any], without: str) -> list[dict[str, Any]]:
    """A call's kernels as `form.Kernel` has them, those first that it launches most; not those named `without`.

    None where the trace cannot be read: a fault of the profiler is none of the version.
    """
    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        try:
            events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        except (ValueError, KeyError):
            return []
    launches = [event for event in events if event.get("cat") == "kernel" and without not in event["name"]]
    return kernel_facts(launches, list(binaries), _loaded_kernels({event["name"] for event in launches}))


def kernel_facts(
    launches: Iterable[dict[str, Any]], binaries: Iterable[Any], loaded: Iterable[Any]
) -> list[dict[str, Any]]:
    """The same from a trace's events, and Triton's `CompiledKernel`s: those of the call, and all of this process."""
    counts = Counter((event["name"], *_resources(event.get("args", {}))) for event in launches)
    facts = []
    for (name, registers, warps, shared_bytes), count in counts.most_common():
        form = name, registers, warps
        of_call, of_process = (
            [kernel for kernel in kernels if (kernel.name, kernel.n_regs, kernel.metadata.num_warps) == form]
            for kernels in (binaries, loaded)
        )
        of_launch = {"registers": registers, "warps": warps, "shared_bytes": shared_bytes}
        facts.append({"name": name[:NAME], "launches": count, **of_launch, **_code_facts(of_call or of_process)})
    return facts


def _resources(launch: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Registers of a thread, warps of a block, bytes of shared memory of a block; None what the profiler leaves out."""
    warps = math.ceil(math.prod(launch["block"]) / WARP) if "block" in launch else None
    return launch.get("registers per thread"), warps, launch.get("shared memory")


def _loaded_kernels(names: set[str]) -> list[Any]:
    """The kernels of these names that Triton has loaded."""
    if "triton" not in sys.modules:
        return []
    from triton.compiler import CompiledKernel  # a slow import, unless a version has done it

    # not isinstance: it asks dead proxies
    kernels = [item for item in gc.get_objects() if type(item) is CompiledKernel]
    return [kernel for kernel in kernels if kernel.module is not None and kernel.name in names]


def _code_facts(kernels: list[Any]) -> dict[str, Any]:
    """Spills (bytes of a thread) and instructions; nothing where binaries that look alike at launch differ in them."""
    facts: list[dict[str, Any]] = []
    for kernel in {id(kernel): kernel for kernel in kernels}.values():
        binary = Binary(kernel.name, kernel.asm["cubin"], "", WARP * kernel.metadata.num_warps, kernel.metadata.shared)
        try:
            facts.append({"spills": SPILL_BYTES * kernel.n_spills, "instructions": instruction_counts(binary)})
        except NoTools:
            facts.append({"spills": SPILL_BYTES * kernel.n_spills})
    return facts[0] if facts and all(other == facts[0] for other in facts) else {}
