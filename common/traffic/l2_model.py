"""A model of a GPU's L2: the sectors used last are kept; programs run in launch order, one per SM at a time.

It is a model, not a count: a GPU's L2 has sets, two halves and an unpublished policy, and its SMs do not run in step.
Its error is measured on a GPU.
"""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from common.traffic.data import SECTOR

Step = tuple[NDArray[np.uint64], bool, bool]  # (sectors, are they read, are they written)


class L2:
    """The model. `size`: bytes. `at_once`: programs that run in step, one per SM. Counts what memory has to move."""

    def __init__(self, size: int, at_once: int) -> None:
        self.size, self._at_once = size, at_once
        self._held: OrderedDict[int, bool] = OrderedDict()  # sector -> was it written since it was loaded?
        self._wave: list[list[Step]] = []
        self._read = self._evicted = 0

    def program(self) -> None:
        """Begin the next program of a launch. As soon as `at_once` programs are collected, they run."""
        if len(self._wave) == self._at_once:
            self.drain()
        self._wave.append([])

    def access(self, sectors: NDArray[np.uint64], reads: bool, writes: bool) -> None:
        if not self._wave:
            self._wave.append([])
        self._wave[-1].append((sectors, reads, writes))

    def drain(self) -> None:
        """Run the remaining programs of a launch: the first instruction of each, then the second of each, and so on."""
        for number in range(max(map(len, self._wave), default=0)):
            for steps in self._wave:
                if number < len(steps):
                    self._step(*steps[number])
        self._wave = []

    def _step(self, sectors: NDArray[np.uint64], reads: bool, writes: bool) -> None:
        held = self._held
        for sector in sectors.tolist():
            dirty = held.pop(sector, None)
            self._read += dirty is None and reads
            held[sector] = writes or bool(dirty)
        while len(held) * SECTOR > self.size:
            self._evicted += held.popitem(last=False)[1]  # written sectors go to memory

    @property
    def read_bytes(self) -> float:
        """Bytes read from memory."""
        return float(SECTOR * self._read)

    @property
    def dram_bytes(self) -> float:
        """Bytes read from memory, and bytes written to it or still to be written."""
        return float(SECTOR * (self._read + self._evicted + sum(self._held.values())))
