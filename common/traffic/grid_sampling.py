"""Launches that are too large to interpret: some programs of each grid run on tensors without memory.

The addresses are invented, one range per tensor; every load returns 0. So the counts are valid only for kernels whose
addresses do not depend on loaded values. The programs of a launch are drawn from a seed, and their counts are scaled
up.
"""

import inspect
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from triton import language as tl
from triton.runtime import interpreter
from triton.runtime.jit import mangle_type
from triton.tools.tensor_descriptor import TensorDescriptor

from common.checks.kernel_memory import index_of
from common.traffic.data import SECTOR, Kernel
from common.traffic.meter import Meter, Sectors, SectorSet, working_programs
from common.traffic.torch_hooks import Operations
from common.traffic.triton_hooks import interpreter_hooks

PROGRAMS, LEAST = 24, 4  # programs of a launch: at most, and at least, however slow they are
LANES = 1 << 25  # lanes of loads and stores: after these no further program begins; a few seconds
Scaled = tuple[Kernel, float]  # a whole launch, and the variance of its sectors
FIRST, GAP = 1 << 40, 1 << 12  # the first invented address; the gap between tensors


class AddressMap:
    """A range of addresses for each storage. Storages are kept alive, so that no other one gets their range."""

    def __init__(self, gap: int = GAP) -> None:
        self._begins: dict[int, tuple[int, Any]] = {}
        self._free, self._gap = FIRST, gap
        self.starts: list[int] = []
        self.sectors: list[int] = []

    def of(self, t: torch.Tensor) -> int:
        storage = t.untyped_storage()
        if storage._cdata not in self._begins:
            self._begins[storage._cdata] = self._free, storage
            self.starts.append(self._free)
            self.sectors.append(-(-storage.nbytes() // SECTOR))
            self._free += -(-storage.nbytes() // self._gap) * self._gap + self._gap
        return self._begins[storage._cdata][0] + int(t.storage_offset()) * t.element_size()

    def tensors_of(self, touched: Sectors) -> Any:
        """The number of each sector's tensor. Raises IndexError if a sector lies outside of all tensors."""
        starts = np.array([0, *self.starts], np.uint64) // SECTOR
        which = np.searchsorted(starts, touched, side="right") - 1
        if not bool((touched < starts[which] + np.array([0, *self.sectors], np.uint64)[which]).all()):
            raise IndexError("a program touches an address outside of all tensors")
        return which - 1

    def estimate_sectors(self, touched: Sectors, scale: float) -> float:
        """The estimated number of sectors that all programs touch, if some touch these; at most what each tensor has.

        Raises IndexError if a sector lies outside of all tensors.
        """
        which = self.tensors_of(touched)
        per_tensor = np.bincount(which, minlength=len(self.starts)).tolist()
        return float(sum(min(scale * n, most) for n, most in zip(per_tensor, self.sectors, strict=True)))


@contextmanager
def sampling(seed: int = 0) -> Iterator[Meter]:
    """Inside, torch operations are counted by shape, and kernels by some of their programs. For tensors on "meta"."""
    meter = Meter()
    sampler = Sampler(meter, random.Random(seed))
    with interpreter_hooks(meter, sampler.run, is_real=False), Operations(meter):
        yield meter


class Sampler:
    def __init__(self, meter: Meter, rng: random.Random) -> None:
        self._meter, self._rng = meter, rng
        self.addresses = AddressMap()
        self._launches: dict[Any, tuple[Kernel, float]] = {}  # launches that differ only in addresses

    def run(self, kernel: Any, *args: Any, grid: Any, **options: Any) -> Scaled:
        """A whole launch, and the variance of its sectors."""
        function = kernel.rewrite()
        executor = interpreter.GridExecutor(function, kernel.arg_names, grid, [])
        named = {name: value for name, value in options.items() if name in kernel.arg_names}
        values = inspect.getcallargs(function, *args, **named)
        shape = grid({**values}) if callable(grid) else grid
        shape = tuple(map(int, (*shape, 1, 1)[:3]))
        key = kernel.fn, shape, tuple((name, _kind(value)) for name, value in values.items())
        if key not in self._launches:
            arguments = {n: v if n in executor.constexprs else self._argument(v) for n, v in values.items()}
            self._launches[key] = self.sample_launch(kernel.__name__, function, arguments, shape)
        return self._launches[key]

    def sample_launch(self, name: str, function: Any, values: dict[str, Any], shape: tuple[int, ...]) -> Scaled:
        programs, builder = math.prod(shape), interpreter.interpreter_builder
        scope = interpreter._patch_lang(function)
        by_program, lanes = dict[int, Kernel](), 0.0
        places, atomic_addresses = (SectorSet(), SectorSet()), list[list[Sectors]]()
        try:
            builder.set_grid_dim(*shape)
            for number in self._draw_programs(programs):
                if len(by_program) >= LEAST and lanes > LANES:  # no clock: a seed must give the same counts anywhere
                    break
                self._meter.begin(name)
                builder.set_grid_idx(*index_of(number, shape))
                function(**values)
                atomic_addresses.append([])
                by_program[number] = self._meter.program_counts(*places, atomic_addresses[-1])
                lanes += by_program[number].lanes
        finally:
            scope.restore()
        if not by_program:
            return Kernel(name, launches=1), 0.0
        scale = programs / len(by_program)
        first, *others = (by_program[number] for number in sorted(by_program))
        working = scale * working_programs([program.read_bytes + program.written_bytes for program in (first, *others)])
        kernel = sum(others, first).times(scale)
        distinct = SECTOR * sum(self.addresses.estimate_sectors(touched.sectors, scale) for touched in places)
        sectors = [program.read_sectors + program.written_sectors for program in (first, *others)]
        # Strata see what changes along a grid; the differences of neighbours estimate the rest.
        spread = float(np.square(np.diff(sectors)).mean()) / 2 if others else 0.0
        variance = programs**2 * (1 - len(by_program) / programs) * spread / len(by_program)
        most = _estimate_max_per_address([np.concatenate(part) for part in atomic_addresses if part], programs)
        kernel = replace(kernel, name=name, launches=1, programs=programs, distinct_bytes=distinct, working=working)
        return replace(kernel, max_atomics_per_address=most), variance

    def _draw_programs(self, programs: int) -> list[int]:
        """One program from each of equally many parts of a grid: the traffic may change from its start to its end."""
        parts = min(PROGRAMS, programs)
        numbers = [self._rng.randrange(i * programs // parts, (i + 1) * programs // parts) for i in range(parts)]
        return self._rng.sample(numbers, parts)

    def _argument(self, value: Any) -> Any:
        """An argument for the interpreter: a tensor becomes a pointer to its invented address."""
        if isinstance(value, torch.Tensor):
            of = tl.str_to_ty(mangle_type(value), None)
            return tl.tensor(interpreter.TensorHandle(np.array([self.addresses.of(value)], np.uint64), of), of)
        if isinstance(value, TensorDescriptor):
            plain = interpreter._implicit_cvt
            strides = [*map(plain, value.strides[:-1]), tl.constexpr(1)]
            blocks = [tl.constexpr(size) for size in value.block_shape]
            return interpreter.interpreter_semantic.make_tensor_descriptor(
                base=self._argument(value.base), shape=[*map(plain, value.shape)], strides=strides, block_shape=blocks,
                padding_option=value.padding,
            )  # fmt: skip
        return interpreter._implicit_cvt(value)


def _estimate_max_per_address(addresses_of: list[Sectors], programs: int) -> float:
    """An estimate of how many of all programs use one address, if all used addresses are used equally often.

    `addresses_of`: the addresses used by each sampled program. How often two of these share one estimates how often any
    two do, unless programs that share an address are neighbours: only one of them was drawn.
    """
    if not addresses_of:
        return 0.0
    hits = [np.unique(addresses, return_counts=True)[1] for addresses in (*addresses_of, np.concatenate(addresses_of))]
    *within_each, in_all = (float((counts * (counts - 1)).sum()) for counts in hits)
    within, pairs = max(int(counts.max()) for counts in hits[:-1]), len(addresses_of) * (len(addresses_of) - 1)
    shared = (in_all - sum(within_each)) / hits[-1].sum() * len(addresses_of)  # for each lane of a program
    return max(within + shared * (programs - 1) / pairs if pairs else within, float(hits[-1].max()))


def _kind(value: Any) -> Any:
    if isinstance(value, TensorDescriptor):
        return _kind(value.base), tuple(value.block_shape), tuple(value.shape), tuple(value.strides)
    return (value.dtype, value.shape, value.stride()) if isinstance(value, torch.Tensor) else value
