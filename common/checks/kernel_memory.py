"""Triton's interpreter, made to watch memory: an address outside of all arrays, and programs that race for one address.

A load outside of all arrays reads what lies there, and such a store changes it: mostly nothing is seen, and now and
then the process dies. The interpreter runs one program after the other, so a race gives the right answer. Here every
element remembers who wrote it and who has read it. Two programs of a launch race if both touch an element, one of them
changes it, not both atomically, and nothing orders them: an atomic operation with release by the first, and then one
with acquire by the second, at one address. Lanes of one program race where no barrier is between.

A GPU looks at none of this: there it is the task of NVIDIA's compute-sanitizer, which knows no races between programs.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

LIBRARIES = ("/triton/", "/numpy/", "/torch/", "/common/")
MOST_PROGRAMS = 65_535  # along the second and the third axis of a grid
PATIENCE = 2_000  # times that one line reads one value at one address: it waits for another program
ALWAYS = UNLIMITED = np.iinfo(np.int64).max
Ints = NDArray[np.int64]
PROGRAM, EVENT, LANE, LINE = range(4)  # columns of an access


class BadAccess(Exception):
    """A kernel reads or writes beside its arrays, or its programs race."""


class Waits(Exception):
    """A program waits for another one, which runs later in the interpreter."""


class LargeGrid(Exception):
    """A launch has more programs than are asked for."""


class _Storage:
    """The elements of a storage: the last write of each, the last that changed nothing, the last reads by two programs.

    `names`: (address, name, element's bytes) of the kernel's parameters that lie in it.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self.begin, self.end, self.unit = storage.data_ptr(), storage.data_ptr() + storage.nbytes(), 16
        self.names: list[tuple[int, str, int]] = []

    def begin_launch(self) -> None:
        count = (self.end - self.begin) // self.unit + 1
        self.write, self.same, self.read, self.other_read = (np.zeros((count, 4), np.int64) for _ in range(4))
        self.is_atomic = np.zeros(count, bool)

    def describe(self, element: int) -> str:
        address = self.begin + element * self.unit
        begins = [entry for entry in self.names if entry[0] <= address] or self.names
        start, name, size = max(begins, key=lambda entry: entry[0])  # of several at one address the first
        return f"{name.removesuffix('_ptr')}[{(address - start) // size}]"


class _Watch:
    """The launch that runs, and all events of this process."""

    def __init__(self) -> None:
        self.storages: list[_Storage] = []
        self.anywhere = self.races = False
        self.order = ""  # this and the next: see `watched`
        self.undefined: float | None = None
        self.event = self.begin = self.barrier = self.program = self.waited = 0
        self.grid: tuple[int, ...] = (1, 1, 1)
        self.permutation: Ints | None = None
        self.lines = [("", 0)]
        self.clock: Ints = np.zeros(1, np.int64)  # of each program the last event that precedes what runs now
        self.released: dict[int, Ints] = {}
        self.last_read: Any = None
        self.most_programs = UNLIMITED  # allowed
        self.programs = self.lanes = 0  # of the largest launch, of the largest access

    def launch(self, names: list[tuple[str, torch.Tensor]]) -> None:
        """Begin a launch with these arrays, each with its parameter's name."""
        by_storage: dict[int, _Storage] = {}
        for name, tensor in names:
            storage = by_storage.setdefault(tensor.untyped_storage().data_ptr(), _Storage(tensor))
            storage.names.append((tensor.data_ptr(), name, tensor.element_size()))
            storage.unit = min(storage.unit, tensor.element_size())
        self.storages = [*by_storage.values()]
        self.anywhere = any(tensor.dtype in (torch.int64, torch.uint64) for _, tensor in names)
        if self.races:
            for storage in self.storages:
                storage.begin_launch()
        self.released, self.begin = {}, self.event

    def start(self, *grid: int) -> None:
        """Begin a launch's programs."""
        if max(grid[1:]) > MOST_PROGRAMS:
            raise BadAccess(f"a grid of {' x '.join(map(str, grid))}: along axes 1 and 2 a GPU has {MOST_PROGRAMS:,}")
        self.grid, count = grid, int(np.prod(grid))
        self.programs = max(self.programs, count)
        if count > self.most_programs:
            raise LargeGrid
        numbers = np.arange(count, dtype=np.int64)
        if self.order == "shuffled":
            np.random.RandomState(count).shuffle(numbers)
        self.permutation = numbers[::-1] if self.order == "reversed" else numbers if self.order else None

    def start_program(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """Begin a program; which one it is, in the order asked for."""
        _, rows, columns = self.grid
        self.program = (index[0] * rows + index[1]) * columns + index[2]
        if self.permutation is not None:
            self.program = int(self.permutation[self.program])
            index = self.program // (rows * columns), self.program // columns % rows, self.program % columns
        self.barrier, self.last_read = self.event, None
        if self.races:
            self.clock = np.full(int(np.prod(self.grid)), self.begin)
            self.clock[self.program] = ALWAYS
        return index

    def access(self, does: str, pointers: Any, mask: Any, size: int, changed: Any = None) -> None:
        """Refuse an address outside of all arrays, and a race.

        `does`: "loads", "stores to" or "adds to". `changed()`: the lanes that change what is there; None for all.
        """
        is_active = np.broadcast_to(np.asarray(mask, bool), pointers.shape).reshape(-1)
        addresses, lanes = pointers.reshape(-1)[is_active], np.flatnonzero(is_active)
        outside = np.ones(addresses.size, bool)
        self.event += 1
        self.lanes = max(self.lanes, is_active.size)
        touched: list[tuple[_Storage, Any]] = []
        for storage in self.storages:
            inside = (addresses >= storage.begin) & (addresses + np.uint64(size) <= storage.end)
            outside &= ~inside
            if self.races and inside.any():
                touched.append((storage, inside))
        if outside.any() and not self.anywhere:
            verb = "reads" if does == "loads" else "writes"
            raise BadAccess(f"a kernel {verb} outside of all its arrays: compare its offsets and mask with their sizes")
        is_changed = changed()[is_active] if touched and changed else np.ones(addresses.size, bool)
        for storage, inside in touched:
            elements = ((addresses[inside] - np.uint64(storage.begin)) // np.uint64(storage.unit)).astype(np.int64)
            self._touch(storage, does, elements, lanes[inside], is_changed[inside])

    def _touch(self, storage: _Storage, does: str, elements: Ints, lanes: Ints, changed: Any) -> None:
        now = np.empty((elements.size, 4), np.int64)
        now[:, PROGRAM], now[:, EVENT], now[:, LANE], now[:, LINE] = self.program, self.event, lanes, self._line()
        write = storage.write[elements]
        if does == "loads":
            self._compare(storage, "stores to", write, does, now, elements)
            is_other = storage.read[elements, PROGRAM] != self.program
            storage.other_read[elements[is_other]] = storage.read[elements[is_other]]
            storage.read[elements] = now
            return
        is_adding = does == "adds to"
        storage.same[elements[~changed]] = now[~changed]
        elements, now, write = elements[changed], now[changed], write[changed]
        plain = ~storage.is_atomic[elements] if is_adding else np.ones(elements.size, bool)
        self._compare(storage, "stores to", write[plain], does, now[plain], elements[plain], same_lane=is_adding)
        self._compare(storage, "stores to", storage.same[elements], does, now, elements, same_lane=True)
        for reads in (storage.read, storage.other_read):
            self._compare(storage, "loads", reads[elements], does, now, elements, same_lane=is_adding)
        storage.write[elements], storage.is_atomic[elements] = now, is_adding

    def _compare(
        self, storage: _Storage, did: str, earlier: Ints, does: str, now: Ints, elements: Ints, same_lane: bool = False
    ) -> None:
        is_same = earlier[:, PROGRAM] == self.program
        races = earlier[:, EVENT] > self.clock[np.minimum(earlier[:, PROGRAM], len(self.clock) - 1)]
        if not same_lane and len(now) > 0:
            within = is_same & (earlier[:, EVENT] > self.barrier) & (earlier[:, LANE] != now[:, LANE])
            races |= within & (earlier[:, EVENT] > self.begin)
        if not races.any():
            return
        first = int(np.argmax(races))
        did_line, line = (self.lines[int(row[first, LINE])] for row in (earlier, now))
        element = storage.describe(int(elements[first]))
        places = f"line {did_line[1]}", f"line {line[1]}"
        if is_same[first]:
            raise BadAccess(
                f"a race in program {self._name(self.program)}: lane {earlier[first, LANE]} {did} {element} "
                f"({places[0]}) and lane {now[first, LANE]} {does} it ({places[1]}), with no barrier between"
            )
        raise BadAccess(
            f"a race for {element}: program {self._name(int(earlier[first, PROGRAM]))} {did} it ({places[0]}), program "
            f"{self._name(self.program)} {does} it ({places[1]}), and nothing orders them"
        )

    def wait_for_lanes(self) -> None:
        """A barrier."""
        self.barrier = self.event

    def synchronize(self, pointers: Any, order: str) -> None:
        """An atomic operation; one of a single lane orders programs, and all lanes wait for what it returns."""
        if pointers.size != 1 or not self.races:
            return
        self.wait_for_lanes()
        address = int(pointers.reshape(-1)[0])
        if "ACQUIRE" in order and address in self.released:
            self.clock = np.maximum(self.clock, self.released[address])
        if "RELEASE" in order:
            clock = self.clock.copy()
            clock[self.program] = self.event
            self.released[address] = np.maximum(self.released.get(address, clock), clock)

    def read_again(self, pointers: Any, result: Any) -> None:
        """Refuse a program that reads one value again and again: nobody will change it."""
        if pointers.size != 1:
            return
        read = (self._line(), int(pointers.reshape(-1)[0]), result.tobytes())
        self.waited = self.waited + 1 if read == self.last_read else 0
        self.last_read = read
        if self.waited > PATIENCE:
            raise Waits(f"line {self.lines[read[0]][1]} waits for another program: only a GPU runs them together")

    def _name(self, program: int) -> str:
        _, rows, columns = self.grid
        index = program // (rows * columns), program // columns % rows, program % columns
        return str(program) if rows == columns == 1 else str(index)

    def _line(self) -> int:
        """The number of the kernel's line that runs."""
        frame: Any = sys._getframe(2)
        while any(part in frame.f_code.co_filename for part in LIBRARIES):
            frame = frame.f_back
        line = (frame.f_code.co_filename, frame.f_lineno)
        if line not in self.lines:
            self.lines.append(line)
        return self.lines.index(line)


watch = _Watch()


@contextmanager
def watched(
    order: str = "", undefined: float | None = None, races: bool = True, most_programs: int = UNLIMITED
) -> Iterator["_Watch"]:
    """Inside, `races` are refused, and programs run in this order: "" (as they are), "reversed" or "shuffled".

    `undefined`: what a lane holds that a load's mask switches off without `other` (see `or_undefined`). A launch of
    more than `most_programs` raises LargeGrid. Yields the watch, with `programs` and `lanes` of what has run inside.
    """
    watch.order, watch.undefined, watch.races, watch.most_programs = order, undefined, races, most_programs
    watch.programs = watch.lanes = 0
    try:
        yield watch
    finally:
        watch.order, watch.undefined, watch.races, watch.most_programs = "", None, False, UNLIMITED


def is_caused_by(error: BaseException | None, kind: type[Exception]) -> bool:
    """Whether an error of the interpreter comes from this kind of error in a kernel."""
    return error is not None and (isinstance(error, kind) or is_caused_by(error.__cause__, kind))
