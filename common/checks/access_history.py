"""What has happened to the elements of an array in a launch: who wrote each one, and who has read it.

An access is a number: its event, and in the lowest bits its lane. Events are counted, so a later access is larger.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

LANE_BITS = 20  # a block has at most 2^20 elements
MOST_WAITING = 1 << 22  # addresses of reads that are kept until somebody writes to the array
Ints = NDArray[np.int64]


def after(event: int) -> int:
    """The least access after an event."""
    return (event + 1) << LANE_BITS


class Read(NamedTuple):
    """A read by a program whose accesses begin after the event `first`."""

    addresses: Any
    accesses: Ints
    first: int


class Storage:
    """The elements of a storage: the last write of each, the last that changed nothing, the last reads by two programs.

    `names`: (address, name, element's bytes) of the kernel's parameters that lie in it. `waiting`: the reads before the
    first write of a launch; most arrays are never written to.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self.begin, self.end, self.unit = storage.data_ptr(), storage.data_ptr() + storage.nbytes(), 16
        self.names: list[tuple[int, str, int]] = []
        self.is_tracked = False
        self.waiting: list[Read] = []
        self.waiting_size = 0

    def track(self) -> None:
        """From here on every access is compared with earlier ones."""
        if self.is_tracked:
            return
        self.is_tracked, count = True, (self.end - self.begin) // self.unit + 1
        self.write, self.same, self.read, self.other_read = (np.zeros(count, np.int64) for _ in range(4))
        self.is_atomic = np.zeros(count, bool)
        for read in self.waiting:
            self.remember(read, self.elements(read.addresses))
        self.waiting.clear()

    def wait(self, read: Read) -> None:
        self.waiting.append(read)
        self.waiting_size += len(read.accesses)
        if self.waiting_size > MOST_WAITING:
            self.track()

    def elements(self, addresses: Any) -> Ints:
        return ((addresses - np.uint64(self.begin)) // np.uint64(self.unit)).view(np.int64)

    def remember(self, read: Read, elements: Ints) -> None:
        last = self.read[elements]
        is_other = last < after(read.first)
        self.other_read[elements[is_other]] = last[is_other]
        self.read[elements] = read.accesses

    def describe(self, element: int) -> str:
        address = self.begin + element * self.unit
        begins = [entry for entry in self.names if entry[0] <= address] or self.names
        start, name, size = max(begins, key=lambda entry: entry[0])  # of several at one address the first
        return f"{name.removesuffix('_ptr')}[{(address - start) // size}]"
