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
from functools import cache
from typing import Any

import numpy as np
import torch

from common.checks.access_history import LANE_BITS, Ints, Storage, after

LIBRARIES = ("/triton/", "/numpy/", "/torch/", "/common/")
MOST_PROGRAMS = 65_535  # along the second and the third axis of a grid
PATIENCE = 2_000  # times that one line reads one value at one address: it waits for another program
UNLIMITED = np.iinfo(np.int64).max


class BadAccess(Exception):
    """A kernel reads or writes beside its arrays, or its programs race."""


class Waits(Exception):
    """A program waits for another one, which runs later in the interpreter."""


class LargeGrid(Exception):
    """A launch has more programs than are asked for."""


class _Watch:
    """The launch that runs, and all events of this process."""

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        self.anywhere = self.races = False
        self.order = ""  # this and the next: see `watched`
        self.undefined: float | None = None
        self.event = self.begin = self.first = self.barrier = self.program = self.waited = 0
        self.grid: tuple[int, ...] = (1, 1, 1)
        self.permutation: Ints | None = None
        self.lines = [("", 0)]
        self.lines_of: list[int] = []  # of each event of the launch
        self.firsts: list[int] = []  # of each program that has begun: the event before its first one
        self.begun: list[int] = []  # the numbers of these programs
        self.clock: Ints | None = None  # of each program the last event that precedes what runs now; None: of none any
        self.released: dict[int, Ints] = {}
        self.last_read: Any = None
        self.most_programs = UNLIMITED  # allowed
        self.programs = self.lanes = 0  # of the largest launch, of the largest access

    def launch(self, names: list[tuple[str, torch.Tensor]]) -> None:
        """Begin a launch with these arrays, each with its parameter's name."""
        by_storage: dict[int, Storage] = {}
        for name, tensor in names:
            storage = by_storage.setdefault(tensor.untyped_storage().data_ptr(), Storage(tensor))
            storage.names.append((tensor.data_ptr(), name, tensor.element_size()))
            storage.unit = min(storage.unit, tensor.element_size())
        self.storages = [*by_storage.values()]
        for storage in self.storages if self.races else ():
            storage.begin_launch()
        self.anywhere = False
        self.released, self.begin = {}, self.event
        self.lines_of, self.firsts, self.begun = [], [], []

    def make_address(self, *_: Any) -> None:
        """An integer becomes an address: of an array that this launch was not given, as in a product of groups."""
        self.anywhere = True

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
            index = index_of(self.program, self.grid)
        self.first = self.barrier = self.event
        self.last_read = self.clock = None
        self.firsts.append(self.first)
        self.begun.append(self.program)
        return index

    def access(self, does: str, pointers: Any, mask: Any, size: int, changed: Any = None) -> None:
        """Refuse an address outside of all arrays, and a race.

        `does`: "loads", "stores to" or "adds to". `changed()`: the lanes that change what is there; None for all.
        """
        self.lanes = max(self.lanes, pointers.size)
        is_active = np.asarray(mask, bool)
        if is_active.all():
            lanes, addresses = np.arange(pointers.size), pointers.reshape(-1)
        else:
            lanes = np.flatnonzero(np.broadcast_to(is_active, pointers.shape))
            addresses = pointers.reshape(-1)[lanes]
        if not lanes.size:
            return
        touched = self._touched(addresses, size)
        if touched is None:
            verb = "reads" if does == "loads" else "writes"
            raise BadAccess(f"a kernel {verb} outside of all its arrays: compare its offsets and mask with their sizes")
        if not self.races:
            return
        self.event += 1
        self.lines_of.append(self._line())
        accesses = lanes + (self.event << LANE_BITS)
        is_changed = changed()[lanes] if touched and changed else np.ones(lanes.size, bool)
        for storage, inside in touched:
            elements = storage.elements(addresses[inside])
            if does == "loads":
                self._compare(storage, "stores to", storage.write[elements], does, accesses[inside], elements)
                storage.remember(accesses[inside], elements, self.first)
            else:
                self._write(storage, does, elements, accesses[inside], is_changed[inside])

    def _touched(self, addresses: Any, size: int) -> list[tuple[Storage, Any]] | None:
        """Each storage with the addresses that lie in it, an index of them; None if one lies in no storage."""
        low, high = int(addresses.min()), int(addresses.max()) + size
        for storage in self.storages:
            if storage.begin <= low and high <= storage.end:
                return [(storage, slice(None))]
        inside = [
            (storage, (addresses >= storage.begin) & (addresses + np.uint64(size) <= storage.end))
            for storage in self.storages
        ]
        if not (self.anywhere or np.any([there for _, there in inside], axis=0).all()):
            return None
        return [(storage, there) for storage, there in inside if there.any()]

    def _write(self, storage: Storage, does: str, elements: Ints, now: Ints, changes: Any) -> None:
        storage.same[elements[~changes]] = now[~changes]
        elements, now = elements[changes], now[changes]
        write, is_adding = storage.write[elements], does == "adds to"
        plain = ~storage.is_atomic[elements] if is_adding else slice(None)
        self._compare(storage, "stores to", write[plain], does, now[plain], elements[plain], same_lane=is_adding)
        self._compare(storage, "stores to", storage.same[elements], does, now, elements, same_lane=True)
        for reads in (storage.read, storage.other_read):
            self._compare(storage, "loads", reads[elements], does, now, elements, same_lane=is_adding)
        storage.write[elements], storage.is_atomic[elements] = now, is_adding

    def _compare(
        self, storage: Storage, did: str, earlier: Ints, does: str, now: Ints, elements: Ints, same_lane: bool = False
    ) -> None:
        races = earlier >= after(self.begin)  # all others precede the launch
        if not races.any():
            return
        is_same = earlier >= after(self.first)
        races &= ~is_same
        if self.clock is not None:
            races &= (earlier >> LANE_BITS) > self.clock[self._programs_of(earlier)]
        if not same_lane:
            races |= (earlier >= after(self.barrier)) & ((earlier ^ now) & ((1 << LANE_BITS) - 1) != 0)
        if not races.any():
            return
        first = int(np.argmax(races))
        event, lane = divmod(int(earlier[first]), 1 << LANE_BITS)
        did_line, line = (self.lines[self.lines_of[number - self.begin - 1]] for number in (event, self.event))
        element = storage.describe(int(elements[first]))
        places = f"line {did_line[1]}", f"line {line[1]}"
        if is_same[first]:
            raise BadAccess(
                f"a race in program {self._name(self.program)}: lane {lane} {did} {element} ({places[0]}) and lane "
                f"{int(now[first]) % (1 << LANE_BITS)} {does} it ({places[1]}), with no barrier between"
            )
        program = int(self._programs_of(earlier[first : first + 1])[0])
        raise BadAccess(
            f"a race for {element}: program {self._name(program)} {did} it ({places[0]}), program "
            f"{self._name(self.program)} {does} it ({places[1]}), and nothing orders them"
        )

    def _programs_of(self, accesses: Ints) -> Ints:
        """Which program made each access of this launch."""
        return np.asarray(self.begun)[np.searchsorted(self.firsts, accesses >> LANE_BITS) - 1]

    def wait_for_lanes(self) -> None:
        """A barrier."""
        self.barrier = self.event

    def synchronize(self, pointers: Any, order: str) -> None:
        """An atomic operation; one of a single lane orders programs, and all lanes wait for what it returns."""
        if pointers.size != 1 or not self.races:
            return
        self.wait_for_lanes()
        address = int(pointers.reshape(-1)[0])
        known = np.full(int(np.prod(self.grid)), self.begin) if self.clock is None else self.clock
        if "ACQUIRE" in order and address in self.released:
            known = self.clock = np.maximum(known, self.released[address])
        if "RELEASE" in order:
            clock = known.copy()
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
        return str(program) if self.grid[1:] == (1, 1) else str(index_of(program, self.grid))

    def _line(self) -> int:
        """The number of the kernel's line that runs."""
        frame: Any = sys._getframe(2)
        while _is_library(frame.f_code.co_filename):
            frame = frame.f_back
        line = (frame.f_code.co_filename, frame.f_lineno)
        if line not in self.lines:
            self.lines.append(line)
        return self.lines.index(line)


@cache
def _is_library(file: str) -> bool:
    return any(part in file for part in LIBRARIES)


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


def cause_of(error: BaseException | None, kinds: Any) -> BaseException | None:
    """The error of these kinds that is behind one of the interpreter, which raises its own from a kernel's; or None."""
    return error if error is None or isinstance(error, kinds) else cause_of(error.__cause__, kinds)


def index_of(number: int, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A program's index in the interpreter's order: the last axis first."""
    x, rest = divmod(number, shape[1] * shape[2])
    return x, *divmod(rest, shape[2])
