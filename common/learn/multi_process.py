"""Exercises of several processes: what each process sends in a call is counted, with gloo, on any machine.

A file runs here at all check sizes before the harness judges it. So a deadlock is found in seconds. A right one then
runs in another number of processes: what is written for one number only is found there.
"""

import math
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from common.checks.arrays import clone, tensors
from common.checks.comm_bytes import CommCounter
from common.checks.poisoned_memory import filled_memory
from common.engine.ranks import GROUP_TIMEOUT, Ranks
from common.isolation import worker
from common.isolation.rank_launcher import RankPipe, launch
from common.learn.gate import Gate
from common.pairs.pair import Pair, load

DEADLINE_S = 10.0  # of a trial, without a word
SEND = "send"  # an operator of torch, beside those of collectives
EARLY = ". Memory is read before anything has come into it: is every receive waited for?"
OTHER_RANKS = 4  # processes: more than the solutions', so that no step of theirs is too many
CLOSE = 2e-2  # of the largest number: a sum in another order, of 16 bits
Target = tuple[Path, str]  # a file, and a function of it


@dataclass(frozen=True)
class Sends:
    """Of one call, the most of all processes. `names`: the collectives'. `early`: something was read too early.

    `unwaited`: operations that were started and not waited for.
    """

    most_bytes: int
    sends: int
    collectives: int
    names: tuple[str, ...]
    early: bool
    unwaited: int = 0


def count(targets: Sequence[Target], sizes: Sequence[Mapping[str, Any]], ranks: int, parent: worker.ParentPipe) -> Any:
    """[size][target] -> Sends, by so many processes below this one, which is a child itself. Raises RanksDied."""
    return launch(_count, ranks, parent, targets, sizes)


def _count(targets: Sequence[Target], sizes: Sequence[Mapping[str, Any]], parent: RankPipe) -> list[list[Sends]]:
    """In the process of a rank."""
    dist.init_process_group("gloo", timeout=GROUP_TIMEOUT)
    ranks = Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), parent)
    modules, counts = {path: load(path) for path, _ in targets}, []
    for number, size in enumerate(sizes):
        parent("count", number / len(sizes))
        counts.append([_sends(ranks, modules[path], run, size) for path, run in targets])
    dist.destroy_process_group()
    return counts


def _sends(ranks: Ranks, module: Any, run: str, size: Mapping[str, Any]) -> Sends:
    torch.manual_seed(0)
    inputs = module.inputs(**size, **ranks.rank_arguments, device="cpu")
    wait, waited = dist.Work.wait, dict[int, Any]()

    def counted_wait(work: Any, *options: Any) -> Any:
        waited[id(work)] = work  # kept, so that no other gets its number
        return wait(work, *options)

    with filled_memory(), CommCounter() as sent, patch.object(dist.Work, "wait", counted_wait):
        ranks.stagger(random.Random(0))
        answer = getattr(module, run)(**inputs)
    early = any(bool(tensor.isnan().any()) for _, tensor in tensors(answer))
    names = tuple(name.strip("_") for name in sent.calls if name != SEND)
    unwaited = max(0, sent.started - len(waited))
    counts = sent.total, sent.calls[SEND], sent.calls.total() - sent.calls[SEND], names, early, unwaited
    return Sends(*map(max, zip(*ranks.share(counts, "sent"), strict=True)))


def trial(pair: Pair, parent: worker.ParentPipe) -> Any:
    """[check size][version] -> Sends, from a child process. Raises RanksDied."""
    sizes = [pair.sizes[size] for size in pair.check_sizes]
    return count([(version.path, "run") for version in pair.versions], sizes, pair.ranks, parent)


def differs(pair: Pair, parent: worker.ParentPipe) -> Any:
    """Whether OTHER_RANKS processes of the variant and of the solution have other answers, at the first check size."""
    return launch(_differs, OTHER_RANKS, parent, pair)


def _differs(pair: Pair, parent: RankPipe) -> bool:
    """In the process of a rank."""
    dist.init_process_group("gloo", timeout=GROUP_TIMEOUT)
    ranks = Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), parent)
    solution, own = (load(version.path) for version in (pair.baseline, pair.variants[0]))
    torch.manual_seed(0)
    inputs = solution.inputs(**pair.sizes[pair.check_sizes[0]], **ranks.rank_arguments, device="cpu")
    right, found = ([t for _, t in tensors(module.run(**clone(inputs)))] for module in (solution, own))
    is_other = ranks.any(len(found) != len(right) or not all(map(_close, found, right)))
    dist.destroy_process_group()
    return is_other


def _close(found: torch.Tensor, right: torch.Tensor) -> bool:
    if found.shape != right.shape:
        return False
    largest = right.double().abs().max() if right.is_floating_point() and right.numel() else 0.0  # a count is exact
    return bool(((found.double() - right.double()).abs() <= CLOSE * largest).all())  # NaN is not


def gate(wanted: Mapping[str, Any], counts: Sequence[tuple[Sends, Sends]]) -> Gate:
    """What a process may send: so many `collectives` and `sends`, and `link`: the bytes over the solution's."""
    for ours, sends in counts:
        names = f" ({', '.join(sends.names)})" * bool(sends.names)
        text = (
            f"a process sends {sends.most_bytes:,} bytes; collectives: {sends.collectives}{names}, sends: {sends.sends}"
        )
        for what in ("collectives", "sends"):
            if getattr(sends, what) > wanted.get(what, math.inf):
                return Gate("sent", False, f"{text}. At most {wanted[what]} {what} pass")
        times = sends.most_bytes / ours.most_bytes
        if not 0 < times <= wanted.get("link", math.inf):
            most = f", where more than 0 and at most {wanted['link']:g}x pass" * ("link" in wanted)
            return Gate("sent", False, f"{text}. That is {times:.2f}x of the solution's bytes{most}")
    return Gate("sent", True, text)
