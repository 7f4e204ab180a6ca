"""A model of a GPU's L2: the sectors used last are kept, programs run in launch order, as many at a time as SMs.

A model, not a count: a GPU's L2 has sets, two halves and a policy that nobody publishes, and its SMs do not run in
step. What it is off by is measured where there is a GPU.
"""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from common.traffic.data import SECTOR

Step = tuple[NDArray[np.uint64], bool, bool]  # sectors, are they read, are they written


class L2:
    """`size`: its bytes. `at_once`: programs that run in step, one on each SM. Counts what memory has to move."""

    def __init__(self, size: int, at_once: int) -> None:
        self.size, self._at_once = size, at_once
        self._held: OrderedDict[int, bool] = OrderedDict()  # sector -> was it written since it came?
        self._wave: list[list[Step]] = []
        self._read = self._evicted = 0

    def program(self) -> None:
        """The next program of a launch begins; once there are as many as run at once, they do."""
        if len(self._wave) == self._at_once:
            self.drain()
        self._wave.append([])

    def access(self, sectors: NDArray[np.uint64], reads: bool, writes: bool) -> None:
        if not self._wave:
            self._wave.append([])
        self._wave[-1].append((sectors, reads, writes))

    def drain(self) -> None:
        """Run what is left of a launch: each program's first instruction, then each one's second."""
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
            self._evicted += held.popitem(last=False)[1]  # what was written goes to memory

    @property
    def read_bytes(self) -> float:
        """What was read from memory."""
        return float(SECTOR * self._read)

    @property
    def dram_bytes(self) -> float:
        """What was read from memory, and what was written to it or still has to be."""
        return float(SECTOR * (self._read + self._evicted + sum(self._held.values())))
