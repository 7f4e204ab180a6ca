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
from operator import itemgetter
from typing import Any

import torch
import torch.distributed as dist

from common.checks.arrays import batches, join, map_arrays, tensors
from common.isolation.rank_launcher import OutOfStep, RankPipe
from common.record.outcome import Outcome

GRACE_S = 5.0  # for the others, when a rank has raised: they may have raised, too, or wait for it in vain
GROUP_TIMEOUT = timedelta(days=1)  # the leader's watch ends ranks that wait in vain
LATE_S = 0.01  # how much later than the others a rank begins in an untimed call
MULTICAST = ("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS")


class Ranks:
    """This process (`rank`) among `count`."""

    def __init__(self, rank: int = 0, count: int = 1, parent: RankPipe | None = None) -> None:
        self.rank, self.count, self._parent, self._step = rank, count, parent, 0
        self.rank_arguments = {"rank": rank, "ranks": count} if count > 1 else {}  # arguments of `inputs`
        if count > 1:
            self._store = dist.PrefixStore("speed-of-light", dist.distributed_c10d._get_default_store())
            self._host_group = dist.new_group(
                backend="gloo"
            )  # what a version leaves pending does not reach these groups
            self._device_group = dist.new_group() if torch.cuda.is_initialized() else self._host_group

    def description(self) -> dict[str, Any]:
        """The group, for the record: empty for one process. Multicast stays as the environment has it."""
        if self.count == 1:
            return {}
        variables = {name: os.environ[name] for name in MULTICAST if name in os.environ}
        return {"count": self.count, "backend": dist.get_backend(), "environment": variables}

    def share(self, value: Any, where: str = "") -> list[Any]:
        """The values of all ranks, equal on each. Raises OutOfStep if another rank shares something else."""
        return [value] if self.count == 1 else self._exchange(value, where, GROUP_TIMEOUT)

    def _exchange(self, value: Any, where: str, timeout: timedelta) -> list[Any]:
        if self._parent:
            self._parent.step()
        self._step += 1
        keys = [f"{self._step}/{rank}" for rank in range(self.count)]
        self._store.set(keys[self.rank], pickle.dumps((where, value)))  # type: ignore[arg-type]
        self._store.wait(keys, timeout)
        messages = [pickle.loads(message) for message in self._store.multi_get(keys)]
        if len({where for where, _ in messages}) > 1:
            errors = [f"rank {rank}: {value}" for rank, (where, value) in enumerate(messages) if where == "raised"]
            places = [f"rank {rank}: {where}" for rank, (where, _) in enumerate(messages)]
            raise OutOfStep(", ".join(errors) or "; ".join(places))
        return [value for _, value in messages]

    def any(self, flag: object) -> bool:
        """Whether it is true on any rank."""
        return any(self.share(bool(flag), "any"))

    def first(self, value: Any) -> Any:
        """Rank 0's value."""
        return self.share(value if self.rank == 0 else None, "first")[0]

    def report_error(self, reason: str) -> None:
        """Say that a call has raised here. Raises OutOfStep unless it has on all ranks."""
        if self.count > 1:
            try:
                self._exchange(reason, "raised", timedelta(seconds=GRACE_S))
            except dist.DistStoreError:
                raise OutOfStep(f"rank {self.rank}: {reason}") from None

    def merge(self, complaints: dict[str, Outcome]) -> dict[str, Outcome]:
        """All ranks' complaints (by label), each with its rank unless all have it."""
        all_complaints, agreed = self.share(complaints, "complaints"), dict[str, Outcome]()
        for rank, rank_complaints in enumerate(all_complaints):
            for label, outcome in rank_complaints.items():
                is_common = all(other.get(label) == outcome for other in all_complaints)
                with_rank = replace(outcome, reason=outcome.reason and outcome.reason.with_facts(rank=rank))
                agreed.setdefault(label, outcome if is_common else with_rank)
        return agreed

    def gather(self, tree: dict[str, Any]) -> dict[str, list[Any]]:
        """Each input of all ranks as a list, on this rank's device. An array's shape may differ between ranks."""
        device = next((t.device for _, t in tensors(tree)), torch.device("cpu"))
        group = self._device_group if device.type == "cuda" else self._host_group
        forms = self.share(map_arrays(lambda x: torch.empty_like(x.detach(), device="meta"), tree), "inputs")
        copies = [map_arrays(lambda x: torch.empty(x.shape, dtype=x.dtype, device=device), form) for form in forms]
        for (_, source), (_, target) in zip(tensors(tree), tensors(copies[self.rank]), strict=True):
            target.copy_(source)
        for rank, copy in enumerate(copies):
            for batch in batches(tensors(copy), itemgetter(1)):
                parts = [x.view(-1).view(torch.uint8) for _, x in batch]
                dist.broadcast(joined := join(parts), src=rank, group=group)
                if len(parts) > 1:
                    for part, received in zip(parts, joined.split([len(part) for part in parts]), strict=True):
                        part.copy_(received)
        return {name: [copy[name] for copy in copies] for name in tree}

    def stagger(self, rng: random.Random) -> None:
        """One rank begins late: an answer that another rank has without waiting for it is wrong."""
        if self.count > 1 and rng.randrange(self.count) == self.rank:
            time.sleep(LATE_S)

    def together(self, device: str) -> None:
        """What the device does next begins at about the same time on all ranks: a barrier on its stream."""
        if self.count > 1:
            dist.all_reduce(torch.zeros(1, device=device), group=self._device_group)


ONE_RANK = Ranks()
