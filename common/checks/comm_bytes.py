"""The bytes that a call sends to other processes, counted at torch.distributed's operators, also in backward and DDP.

The count is by what a collective has to move (the definitions of nccl-tests), whatever the library really sends.
"""

from collections import Counter
from typing import Any

import torch.distributed as dist
from torch.utils._pytree import tree_leaves

from common.pairs.eager_mode import EagerMode

ALL_REDUCES = {"allreduce_": 2, "allreduce_coalesced_": 2}  # times (n - 1) / n of the bytes of one buffer
PARTS = ("_reduce_scatter_base_", "reduce_scatter_", "reduce_scatter_tensor_coalesced_", "alltoall_base_", "alltoall_")
ALL_GATHERS = ("_allgather_base_", "allgather_", "allgather_into_tensor_coalesced_")  # the own part, to n - 1 others
RECEIVES = ("recv_", "recv_any_source_")
BARRIERS = ("barrier", "monitored_barrier_")  # they carry no data, so they say nothing about how a version moves it


class CommCounter(EagerMode):
    """Inside, counts the bytes of each collective by its operator's name, and the calls of those that send.

    `started`: all operators, also receives and barriers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes_by_operator: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.started = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: tuple = (), keywords: dict | None = None) -> Any:
        result = function(*arguments, **(keywords or {}))
        name = function._schema.name.split("::")[1]
        self.started += function.namespace == "c10d"
        if function.namespace == "c10d" and name not in BARRIERS:
            self.bytes_by_operator[name] += _sent_bytes(name, arguments)
            if name not in RECEIVES:
                self.calls[name] += 1
        return result

    @property
    def total(self) -> int:
        return sum(self.bytes_by_operator.values())


def _sent_bytes(name: str, arguments: tuple[Any, ...]) -> int:
    n, rank = dist.get_world_size(), dist.get_rank()
    sizes = [[leaf.nbytes for leaf in tree_leaves(argument) if hasattr(leaf, "nbytes")] for argument in arguments]
    first, second = sum(sizes[0]), sum(sizes[1]) if len(sizes) > 1 else 0
    if name in ALL_REDUCES:
        return -(-ALL_REDUCES[name] * (n - 1) * first // n)  # rounded up: too little would accuse
    if name in PARTS:
        return -(-(n - 1) * second // n)
    if name in ALL_GATHERS:
        return (n - 1) * second
    if name == "send":
        return first
    if name in ("gather_", "reduce_"):
        is_root = next(argument for argument in arguments if type(argument) is int) == rank
        return 0 if is_root else second if name == "gather_" else first
    return 0 if name in RECEIVES else first + second  # rather too much, as above
