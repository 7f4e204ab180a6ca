"""A pair with RANKS: where its processes run, and what each of them does. Needs no torch until a rank runs."""

import os
from dataclasses import replace
from functools import cache
from typing import Any

from common.engine.job import AloneRequest, AloneResult, Job
from common.isolation import worker
from common.isolation.pipe import ParentPipe
from common.isolation.rank_launcher import RankPipe
from common.pairs.interpreter import environment_on
from common.pairs.pair import Pair
from common.record.result import PairResult

ON_CPU = "cpu"  # the size that is timed without enough GPUs: a pair without it is only verified there


def place_job(job: Job) -> Job:
    """The job with its number of ranks: one for each GPU with NCCL if there are enough, else on the CPU with gloo."""
    least, gpus = job.pair.ranks, job.info["gpus"]
    if least == 1 or (job.info["kind"] == "cuda" and gpus >= least):
        return replace(job, ranks=gpus if least > 1 else 1)
    info = job.info if job.info["kind"] == "cpu" else {**job.info, "kind": "cpu", "capability": None}
    return replace(job, ranks=least, device="cpu", info=info)


def is_timed(job: Job) -> bool:
    return job.ranks == 1 or job.info["kind"] == "cuda" or job.size == ON_CPU


def link_limits(pairs: list[Pair], info: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """The limits with the rate of the links of these pairs' processes, if there are any such pairs."""
    least = max(pair.ranks for pair in pairs)
    if least == 1:
        return limits
    kind, count = ("cuda", info["gpus"]) if info["gpus"] >= least and info["kind"] == "cuda" else ("cpu", least)
    rate, how = _link_rate(count, kind)
    limit = limits.get("link_bytes", {"datasheet": None, "source": ""})
    return {**limits, "link_bytes": {**limit, "measured": rate, "how": how}}


@cache
def _link_rate(count: int, kind: str) -> tuple[float, str]:
    """(Bytes per second, how they were measured), found once in child processes."""
    rate: tuple[float, str] = worker.call(_measure_link, count, kind, environment=environment_on(kind))
    return rate


def _measure_link(count: int, kind: str, parent: ParentPipe) -> tuple[float, str]:
    from common.engine.link_rate import measure_link  # imports torch

    return measure_link(count, kind, parent)


def run_rank(job: Job, request: AloneRequest | None, parent: RankPipe) -> PairResult | AloneResult:
    """In a rank's process: join the group, measure the pair or one candidate alone, leave the group."""
    import torch
    import torch.distributed as dist

    from common.engine.measure import measure_pair
    from common.engine.ranks import GROUP_TIMEOUT, Ranks
    from common.engine.run_alone import run_alone
    from common.machine.device import describe

    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if job.info["kind"] == "cuda":
        job = replace(job, device=f"cuda:{rank}")
        torch.cuda.set_device(rank)
        job = replace(job, info=describe(job.device))
    dist.init_process_group("nccl" if job.info["kind"] == "cuda" else "gloo", timeout=GROUP_TIMEOUT)
    ranks = Ranks(rank, count, parent)
    result = run_alone(job, request, parent, ranks) if request else measure_pair(job, parent, ranks)
    ranks.share("done")  # a rank that leaves the group breaks the connections of the others
    dist.destroy_process_group()
    return result
