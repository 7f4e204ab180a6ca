"""Torch operations, counted with a dispatch mode: reads and writes by the shapes of the tensors.

An operation counts as one launch that reads each operand and writes its result, in whole sectors: the least that it
needs. (Only a GPU's counters show what a library's kernel requests beyond that.) A torch.compile function runs
operation by operation: its fused kernels are not counted.
"""

import math
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.flop_counter import flop_registry

from common.pairs.eager_mode import EagerMode, tensors_in, with_own_memory
from common.traffic.data import SECTOR, Kernel
from common.traffic.meter import Meter

PRECISION = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
WRITES_ONLY = ("copy_", "fill_", "zero_")  # replaced values are not read
INDEXED = ("index_copy_", "index_put_", "scatter_.")  # write no more than what is put in: the last operand
FORM_ONLY = ("new_", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like")  # uses only an operand's shape


class Operations(EagerMode):
    """While active, every operation reports to the meter."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        given, made = tensors_in((args, kwargs)), tensors_in(out)
        new = with_own_memory(made, given)
        self._meter.allocate({StorageWeakRef(t.untyped_storage()): t.untyped_storage().nbytes() for t in new})
        changes = func._schema.is_mutable and not _copies_to_itself(func, given)
        if (new or changes) and not func.__name__.startswith(("empty", "new_empty")):
            self._report(func, args, kwargs, given, made, out)
        return out

    def _report(self, func: Any, args: Any, kwargs: Any, given: list[Any], made: list[Any], out: Any) -> None:
        source = given[1] if func.__name__.startswith("copy_") and len(given) > 1 else given[0] if given else None
        if source is not None and made and source.device.type != made[0].device.type:
            to_device = source.device.type == "cpu"
            self._meter.copy("h2d_bytes" if to_device else "d2h_bytes", min(_bytes(source), _bytes(made[0])))
            return
        used = args, {name: value for name, value in kwargs.items() if not name.startswith("out")}
        read = tensors_in(used)
        if func.__name__.startswith((*WRITES_ONLY, *FORM_ONLY)):
            read = read[1:]
        if func.__name__.startswith(INDEXED):
            read, made = read[1:], read[-1:]
        reads, writes, once = (
            sum(map(_bytes, tensors)) for tensors in (read, made, {_place(t): t for t in read}.values())
        )
        read_sectors, written_sectors, distinct = (-(-amount // SECTOR) for amount in (reads, writes, once + writes))
        name, flops = f"torch.{func.__name__.partition('.')[0]}", _flops(func, args, kwargs, given, out)
        sectors = read_sectors, written_sectors, SECTOR * distinct
        self._meter.add(Kernel(name, 1, 0, reads, writes, *sectors, flops=flops))


def _copies_to_itself(func: Any, given: list[torch.Tensor]) -> bool:
    """Whether this copies a view to itself, as at the end of `y[0] += b`. Torch then launches nothing."""
    return func is torch.ops.aten.copy_.default and _place(given[0]) == _place(given[1])


def _place(t: torch.Tensor) -> tuple[Any, ...]:
    """Equal for two views of the same elements in the same order."""
    return t.untyped_storage()._cdata, t.storage_offset(), t.shape, t.stride(), t.dtype


class MetaAsGpu(EagerMode):
    """While active, the device "meta" stands for a GPU: nothing is copied from it, and no host memory is pinned."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {name: value for name, value in (kwargs or {}).items() if name != "pin_memory"}
        given = [t for t in args if isinstance(t, torch.Tensor)]
        if func is torch.ops.aten.copy_.default and given[0].device.type != given[1].device.type:
            return given[0]
        if func is torch.ops.aten._to_copy.default and str(kwargs.get("device", "meta")) != given[0].device.type:
            return torch.empty_like(given[0], **{name: kwargs[name] for name in ("dtype", "device") if name in kwargs})
        if func in (torch.ops.aten._pin_memory.default, torch.ops.aten.pin_memory.default):
            return given[0]
        return func(*args, **kwargs)


def _bytes(t: torch.Tensor) -> int:
    """Bytes of the elements, each counted once: an expanded tensor contains some several times."""
    places = [size for size, stride in zip(t.shape, t.stride(), strict=True) if stride]
    return math.prod(places) * t.element_size()


def _flops(func: Any, args: Any, kwargs: Any, given: list[torch.Tensor], out: Any) -> dict[str, float]:
    """FLOPs of a product or a convolution, as torch counts them; for float32 in the precision set for GPUs."""
    packet = func._overloadpacket
    anew = getattr(torch.ops.aten, packet.__name__.removesuffix("_"), None)  # what writes the same to a new tensor
    formula = flop_registry.get(packet) or flop_registry.get(anew)
    if formula is None or not given:
        return {}
    precision = PRECISION.get(given[-1].dtype, "fp8")
    if precision == "fp32" and torch.backends.cuda.matmul.fp32_precision == "tf32":
        precision = "tf32"
    return {f"{precision}_flops": float(formula(*args, **kwargs, out_val=out))}
