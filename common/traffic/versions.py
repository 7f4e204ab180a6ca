"""The memory traffic of each version of a pair, counted in a child process; exact at the sizes `count` and `check*`.

At other sizes tensors have no memory, and some programs of every grid are run (sampling.py).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from common.isolation import worker
from common.pairs.contract import Version
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import NOT_INTERPRETED, Pair, load
from common.pairs.user_error import UserError
from common.traffic.data import Traffic
from common.xray.occupancy import Machine

EXACT = ("count", "check")  # classes of sizes so small that every program runs
DEADLINE_S = 60.0  # seconds without progress: the version waits for another program's result


@dataclass(frozen=True)
class VersionTraffic:
    """A version's traffic at a size, or the reason why there is none. `failed`: by its own fault. `cost`: of its file.

    `sampled`: only some programs of its grids were run, on tensors without memory.
    """

    label: str
    traffic: Traffic | None = None
    reason: str = ""
    failed: bool = False
    cost: dict[str, float] = field(default_factory=dict)
    sampled: bool = False

    @property
    def unit(self) -> float:
        """Bytes of the minimum work, the unit of the table; NaN if the pair declares none."""
        return self.cost.get("dram_bytes") or self.cost.get("dram_read_bytes") or math.nan


def is_exact(size: str) -> bool:
    return size.split("/")[0] in EXACT


def count_pair(
    pair: Pair,
    size: str,
    machine: Machine,
    on_version: Callable[[str], None] = lambda label: None,
    models_l2: bool = False,
) -> list[VersionTraffic]:
    """Count every version at one size, as on a GPU of this kind; with a model of its L2 if all programs run."""
    versions, left = list[VersionTraffic](), list(pair.versions)

    def follow_progress(label: str, fraction: float) -> None:
        on_version(label)
        if fraction:  # a version is complete
            done.append(label)

    while left:
        done = list[str]()
        try:
            count = partial(count_versions, left, pair, size, machine, models_l2)
            versions += worker.call(count, environment=INTERPRETED, on_progress=follow_progress, deadline_s=DEADLINE_S)
            left = []
        except worker.ChildFailed as death:  # versions before it are counted again: their counts were lost
            guilty = left[len(done)]
            versions.append(VersionTraffic(guilty.label, reason=str(death), failed=True))
            left = [version for version in left if version is not guilty]
    order = [version.label for version in pair.versions]
    return sorted(versions, key=lambda version: order.index(version.label))


def count_versions(
    versions: Sequence[Version], pair: Pair, size: str, machine: Machine, models_l2: bool, report: worker.Report
) -> list[VersionTraffic]:
    """The same in this process. Triton must interpret (INTERPRETED)."""
    counted = []
    for version in versions:
        report(version.label, 0.0)
        counted.append(_count(version, pair, size, machine, models_l2))
        report(version.label, 1.0)
    return counted


def _count(version: Version, pair: Pair, size: str, machine: Machine, models_l2: bool) -> VersionTraffic:
    if "cupy" in version.imports:
        return VersionTraffic(
            version.label, reason="CuPy and CUDA C++ do not run in Triton's interpreter: X-ray shows them"
        )
    if version.is_gluon:
        return VersionTraffic(version.label, reason=NOT_INTERPRETED)
    if pair.ranks > 1:
        return VersionTraffic(version.label, reason="runs in several processes: only one is counted here")
    if not find_spec("triton"):
        return VersionTraffic(version.label, reason="needs the package triton, whose interpreter does the counting")
    if version.constants.get("REQUIRES", {}).get("gpus", 1) > 1:
        return VersionTraffic(version.label, reason="works on several GPUs: only one is counted here")
    try:
        with _tensors(version, is_exact(size), machine, models_l2) as (device, counting):
            module = load(version.path)
            inputs = module.inputs(**pair.sizes[size], device=device)
            amounts = getattr(module, "cost", getattr(load(pair.baseline.path), "cost", None))
            cost: dict[str, Any] = amounts(**inputs) if amounts else {}
            with counting():
                state = module.setup(**inputs) if hasattr(module, "setup") else {}
            with counting() as meter:
                module.run(**inputs, **state)
    except Exception as error:  # noqa: BLE001 (any need for something missing)
        reason, is_own_fault = _reason_not_counted(error)
        return VersionTraffic(version.label, reason=reason, failed=is_own_fault)
    traffic, amounts = meter.traffic, {key: float(amount) for key, amount in cost.items()}
    return VersionTraffic(version.label, traffic, cost=amounts, sampled=device == "meta" and traffic.programs > 0)


def _reason_not_counted(error: Exception) -> tuple[str, bool]:
    """(Why a version was not counted, whether that is its own fault.)"""
    if isinstance(error, UserError):
        return str(error), False
    message = str(error).lower()
    for text, feature in (("inline_asm", "inline assembly"), ("gluon", "Gluon"), ("extern_elementwise", "libdevice")):
        if text in message:
            return f"{feature} does not run in Triton's interpreter", False
    without_gpu = isinstance(error, RuntimeError) and ("cuda" in message or "nvidia" in message)
    return worker.one_line(error), not without_gpu


class _Graphs:
    """Stands for CUDA graphs: each replay adds the counts of what was captured.

    Its kernels count as launches, although the CPU makes one call for all of them.
    """

    def __init__(self, counting: Callable[[], Any]) -> None:
        self._counted, self._meters, self._captured = counting, list[Any](), dict[int, Traffic]()

    @contextmanager
    def counting(self) -> Iterator[Any]:
        with self._counted() as meter:
            self._meters.append(meter)
            yield meter
        self._meters.pop()

    @contextmanager
    def capture(self, graph: Any, *_: Any, **__: Any) -> Iterator[None]:
        with self._counted() as meter:
            yield
        self._captured[id(graph)] = meter.traffic

    def new(self, *_: Any, **__: Any) -> Any:
        graph = SimpleNamespace()
        graph.replay = lambda: [self._meters[-1].add(kernel) for kernel in self._captured[id(graph)].kernels]
        return graph


@contextmanager
def _tensors(version: Version, exact: bool, machine: Machine, models_l2: bool) -> Iterator[tuple[str, Any]]:
    """The device on which inputs are drawn, and the context that counts a call on them.

    Tensors on "meta" have shapes without memory, by which torch operations are counted.
    """
    from unittest.mock import patch  # a slow import, as the others

    import torch

    from common.traffic.call import counting
    from common.traffic.grid_sampling import sampling
    from common.traffic.l2_model import L2
    from common.traffic.torch_hooks import MetaAsGpu
    from common.xray.capture import as_if_on

    if exact and not version.needs_cuda:
        yield "cpu", lambda: counting(L2(machine.l2_bytes, machine.sms) if models_l2 else None)
        return

    graphs = _Graphs(sampling)
    with as_if_on(machine), patch.multiple(torch.cuda, CUDAGraph=graphs.new, graph=graphs.capture), MetaAsGpu():
        yield "meta", graphs.counting
