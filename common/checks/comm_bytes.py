"""The bytes that a call sends to other processes, counted at torch.distributed's operators, also in backward and DDP.

The count is by what a collective has to move (the definitions of nccl-tests), whatever the library really sends.
"""

from collections import Counter
from typing import Any

import torch.distributed as dist
from torch.utils._pytree import tree_leaves

from common.pairs.eager_mode import EagerMode

HALVES = {"allreduce_": 2, "allreduce_coalesced_": 2}  # times (n - 1) / n of the bytes of one buffer
PARTS = ("_reduce_scatter_base_", "reduce_scatter_", "reduce_scatter_tensor_coalesced_", "alltoall_base_", "alltoall_")
OWN = ("_allgather_base_", "allgather_", "allgather_into_tensor_coalesced_")  # the own part, to n - 1 others
NOTHING = ("recv_", "recv_any_source_")
BARRIERS = ("barrier", "monitored_barrier_")  # they carry no data, so they say nothing about how a version moves it


class Sent(EagerMode):
    """Inside, counts the bytes of each collective by its operator's name, and the calls of those that send."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: tuple = (), named: dict | None = None) -> Any:
        result = function(*arguments, **(named or {}))
        name = function._schema.name.split("::")[1]
        if function.namespace == "c10d" and name not in BARRIERS:
            self.counted[name] += _bytes(name, arguments)
            if name not in NOTHING:
                self.calls[name] += 1
        return result

    @property
    def total(self) -> int:
        return sum(self.counted.values())


def _bytes(name: str, arguments: tuple[Any, ...]) -> int:
    n, rank = dist.get_world_size(), dist.get_rank()
    sizes = [[each.nbytes for each in tree_leaves(one) if hasattr(each, "nbytes")] for one in arguments]
    first, second = sum(sizes[0]), sum(sizes[1]) if len(sizes) > 1 else 0
    if name in HALVES:
        return -(-HALVES[name] * (n - 1) * first // n)  # rounded up: too little would accuse
    if name in PARTS:
        return -(-(n - 1) * second // n)
    if name in OWN:
        return (n - 1) * second
    if name == "send":
        return first
    if name in ("gather_", "reduce_"):
        is_root = next(one for one in arguments if type(one) is int) == rank
        return 0 if is_root else second if name == "gather_" else first
    return 0 if name in NOTHING else first + second  # rather too much, as above
