"""What has happened to the elements of an array in a launch: who wrote each one, and who has read it.

An access is a number: its event, and in the lowest bits its lane. Events are counted, so a later access is larger.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

LANE_BITS = 20  # a block has at most 2^20 elements
Ints = NDArray[np.int64]


def after(event: int) -> int:
    """The least access after an event."""
    return (event + 1) << LANE_BITS


class Storage:
    """The elements of a storage: the last write of each, the last that changed nothing, the last reads by two programs.

    `names`: (address, name, element's bytes) of the kernel's parameters that lie in it.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self.begin, self.end, self.unit = storage.data_ptr(), storage.data_ptr() + storage.nbytes(), 16
        self.names: list[tuple[int, str, int]] = []

    def begin_launch(self) -> None:
        """Once `unit`, the bytes of the smallest element, is known."""
        count = (self.end - self.begin) // self.unit + 1
        self.write, self.same, self.read, self.other_read = (np.zeros(count, np.int64) for _ in range(4))
        self.is_atomic = np.zeros(count, bool)

    def elements(self, addresses: Any) -> Ints:
        return ((addresses - np.uint64(self.begin)) // np.uint64(self.unit)).view(np.int64)

    def remember(self, accesses: Ints, elements: Ints, first: int) -> None:
        """Reads by a program whose accesses begin after the event `first`."""
        last = self.read[elements]
        is_other = last < after(first)
        self.other_read[elements[is_other]] = last[is_other]
        self.read[elements] = accesses

    def describe(self, element: int) -> str:
        address = self.begin + element * self.unit
        begins = [entry for entry in self.names if entry[0] <= address] or self.names
        start, name, size = max(begins, key=lambda entry: entry[0])  # of several at one address the first
        return f"{name.removesuffix('_ptr')}[{(address - start) // size}]"
