"""The rate of the links between the processes of a group, in both directions at once."""

import os
import time

import torch
import torch.distributed as dist

from common.isolation.pipe import ParentPipe
from common.isolation.rank_launcher import RankPipe, launch
from common.machine.clock import synchronize

SIZE, TRIES = {"cuda": 256 << 20, "cpu": 16 << 20}, 7


def measure_link(count: int, kind: str, parent: ParentPipe) -> tuple[float, str]:
    """(Bytes per second that each of `count` processes sends while it receives as many, how). In a child process."""
    backend = "NCCL" if kind == "cuda" else "gloo"
    how = f"{SIZE[kind] >> 20} MiB sent and received at once, {backend}, {count} processes, best of {TRIES}"
    return launch(_measure_rate, count, parent, kind), how


def _measure_rate(kind: str, parent: RankPipe) -> float:
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device(kind, rank) if kind == "cuda" else torch.device(kind)
    if kind == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    outgoing, incoming = (torch.zeros(SIZE[kind], dtype=torch.uint8, device=device) for _ in range(2))
    best = torch.full((1,), float("inf"), dtype=torch.float64, device=device)
    for _ in range(TRIES):
        dist.all_reduce(torch.zeros(1, device=device))
        synchronize(str(device))
        begin = time.perf_counter()
        operations = (
            dist.P2POp(dist.isend, outgoing, (rank + 1) % count),
            dist.P2POp(dist.irecv, incoming, (rank - 1) % count),
        )
        for work in dist.batch_isend_irecv(list(operations)):
            work.wait()
        synchronize(str(device))
        elapsed_s = torch.full_like(best, time.perf_counter() - begin)
        dist.all_reduce(elapsed_s, op=dist.ReduceOp.MAX)
        best = torch.minimum(best, elapsed_s)
        parent.step()
    dist.destroy_process_group()
    return SIZE[kind] / float(best)
