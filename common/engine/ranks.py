"""The ranks of a pair run the same stages, each in its own process. This keeps them in step.

All have the same seed, so they draw the same numbers and run the candidates in the same order. What one rank finds out
by itself (a time, a wrong answer) is shared before anything is decided by it. Without RANKS there is one process, and
sharing does nothing.
"""

import os
import pickle
import random
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from common.checks.arrays import map_arrays, tensors
from common.isolation.rank_launcher import OutOfStep, RankLine
from common.record.outcome import Outcome

GRACE_S = 5.0  # for the others, when a rank has raised: they may have raised, too, or wait for it in vain
LONG = timedelta(days=1)  # the leader's watch ends ranks that wait in vain
LATE_S = 0.01  # how much later than the others a rank begins in an untimed call
MULTICAST = ("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS")


class Ranks:
    """This process (`rank`) among `count`."""

    def __init__(self, rank: int = 0, count: int = 1, line: RankLine | None = None) -> None:
        self.rank, self.count, self._line, self._turns = rank, count, line, 0
        self.place = {"rank": rank, "ranks": count} if count > 1 else {}  # arguments of `inputs`
        if count > 1:
            self._store = dist.PrefixStore("speed-of-light", dist.distributed_c10d._get_default_store())
            self._own = dist.new_group(backend="gloo")  # what a version leaves pending does not reach these groups
            self._on_device = dist.new_group() if torch.cuda.is_initialized() else self._own

    def described(self) -> dict[str, Any]:
        """The group, for the record: empty for one process. Multicast stays as the environment has it."""
        if self.count == 1:
            return {}
        set_here = {name: os.environ[name] for name in MULTICAST if name in os.environ}
        return {"count": self.count, "backend": dist.get_backend(), "environment": set_here}

    def share(self, mine: Any, where: str = "") -> list[Any]:
        """The values of all ranks, equal on each. Raises OutOfStep if another rank shares something else."""
        return [mine] if self.count == 1 else self._shared(mine, where, LONG)

    def _shared(self, mine: Any, where: str, patience: timedelta) -> list[Any]:
        if self._line:
            self._line.step()
        self._turns += 1
        keys = [f"{self._turns}/{rank}" for rank in range(self.count)]
        self._store.set(keys[self.rank], pickle.dumps((where, mine)))  # type: ignore[arg-type]
        self._store.wait(keys, patience)
        said = [pickle.loads(each) for each in self._store.multi_get(keys)]
        if len({where for where, _ in said}) > 1:
            raised = [f"rank {rank}: {value}" for rank, (where, value) in enumerate(said) if where == "raised"]
            raise OutOfStep(", ".join(raised) or "; ".join(f"rank {i}: {where}" for i, (where, _) in enumerate(said)))
        return [value for _, value in said]

    def any(self, flag: object) -> bool:
        """Whether it is true on any rank."""
        return any(self.share(bool(flag), "any"))

    def first(self, value: Any) -> Any:
        """Rank 0's value."""
        return self.share(value if self.rank == 0 else None, "first")[0]

    def raised(self, reason: str) -> None:
        """Say that a call has raised here. Raises OutOfStep unless it has on all ranks."""
        if self.count > 1:
            try:
                self._shared(reason, "raised", timedelta(seconds=GRACE_S))
            except dist.DistStoreError:
                raise OutOfStep(f"rank {self.rank}: {reason}") from None

    def merged(self, complaints: dict[str, Outcome]) -> dict[str, Outcome]:
        """All ranks' complaints (by label), each with its rank unless all have it."""
        every, found = self.share(complaints, "complaints"), dict[str, Outcome]()
        for rank, mine in enumerate(every):
            for label, outcome in mine.items():
                is_common = all(other.get(label) == outcome for other in every)
                of_rank = replace(outcome, reason=outcome.reason and outcome.reason.with_facts(rank=rank))
                found.setdefault(label, outcome if is_common else of_rank)
        return found

    def gather(self, tree: dict[str, Any]) -> dict[str, list[Any]]:
        """Each input of all ranks as a list, on this rank's device. An array's shape may differ between ranks."""
        device = next((t.device for _, t in tensors(tree)), torch.device("cpu"))
        group = self._on_device if device.type == "cuda" else self._own
        forms = self.share(map_arrays(lambda x: torch.empty_like(x.detach(), device="meta"), tree), "inputs")
        there = [map_arrays(lambda x: torch.empty(x.shape, dtype=x.dtype, device=device), each) for each in forms]
        for (_, mine), (_, copied) in zip(tensors(tree), tensors(there[self.rank]), strict=True):
            copied.copy_(mine)
        for rank, each in enumerate(there):
            for _, x in tensors(each):
                dist.broadcast(x.view(-1).view(torch.uint8), src=rank, group=group)
        return {name: [each[name] for each in there] for name in tree}

    def stagger(self, rng: random.Random) -> None:
        """One rank begins late: an answer that another rank has without waiting for it is wrong."""
        if self.count > 1 and rng.randrange(self.count) == self.rank:
            time.sleep(LATE_S)

    def together(self, device: str) -> None:
        """What the device does next begins at about the same time on all ranks: a barrier on its stream."""
        if self.count > 1:
            dist.all_reduce(torch.zeros(1, device=device), group=self._on_device)


ONE = Ranks()
