"""Several processes from a notebook: a cell's function runs in each of them; what a pair's versions send is counted."""

import ast
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
import torch.distributed as dist
from IPython.display import Markdown, display
from torch.testing._internal.distributed.fake_pg import FakeStore

from common.checks.comm_bytes import CommCounter
from common.engine.ranks import GROUP_TIMEOUT, Ranks
from common.isolation import worker
from common.isolation.rank_launcher import RankPipe, launch
from common.machine.device import default_device, use_device
from common.notebook.cells import ready, table
from common.pairs.contract import Version
from common.pairs.interpreter import environment_on
from common.pairs.pair import Pair
from common.pairs.user_error import UserError

DEADLINE_S = 40.0  # of a cell's processes, without a sign of progress
Parts = dict[str, tuple[str, Any]]  # name -> a module's name, a function's text or a value, and which of them it is


class NoResult(UserError):
    """A process has raised, crashed or waited in vain."""


def in_ranks(function: Callable[..., Any], ranks: int = 2) -> list[Any]:
    """[rank] -> function(rank, ranks, device) in a process of its own; all of them form a group of torch.distributed.

    With NCCL where there is a GPU for each process, otherwise on the CPU with gloo. A function of a cell is sent as
    text, with what it uses of the notebook: modules, other functions of cells, values that can be pickled. Raises
    NoResult.
    """
    try:
        work, variables = (_parts(function), function.__name__, ranks), environment_on(default_device())
        results: list[Any] = worker.call(_lead, *work, environment=variables, deadline_s=DEADLINE_S)
    except worker.ChildFailed as death:
        raise NoResult(str(death)) from None
    return results


def _parts(function: Any) -> Parts:
    """The function and all that it uses of its module."""
    parts, todo = Parts(), [function]
    while todo:
        one = todo.pop()
        text = inspect.getsource(one)
        parts[one.__name__] = ("text", text)
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        for name in (names & _outer(one.__code__) & one.__globals__.keys()) - parts.keys():
            value = one.__globals__[name]
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                todo.append(value)
            else:
                parts[name] = ("module", value.__name__) if isinstance(value, ModuleType) else ("value", value)
    return parts


def _outer(code: CodeType) -> set[str]:
    """Names in a function's code that are not its own: globals and attributes."""
    inner = [_outer(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _lead(parts: Parts, name: str, ranks: int, parent: worker.ParentPipe) -> Any:
    return launch(_rank, ranks, parent, parts, name)


def _rank(parts: Parts, name: str, parent: RankPipe) -> list[Any]:
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    on_gpu = torch.cuda.device_count() >= count
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    use_device(str(device), count)
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=GROUP_TIMEOUT)
    ranks = Ranks(rank, count, parent)
    here: dict[str, Any] = {}
    for key, (kind, value) in parts.items():
        if kind == "text":
            exec(compile(value, "cell", "exec"), here)
        else:
            here[key] = import_module(value) if kind == "module" else value
    every = ranks.share(here[name](rank, count, device))
    ranks.share("done")  # a rank that leaves the group breaks the connections of the others
    dist.destroy_process_group()
    return every


@dataclass(frozen=True)
class Sends:
    """What one process calls, by operator, and the bytes that it sends to others."""

    calls: dict[str, int]
    bytes: int


def count_sent(pair: Pair, size: str = "check", ranks: int = 2) -> dict[str, list[Sends]]:
    """Label -> [rank] what a call sends with so many processes: counted on this CPU, without the other processes."""
    arguments, places = pair.sizes[size], range(ranks)
    return {one.label: [_sends(one, arguments, rank, ranks) for rank in places] for one in pair.versions}


def _sends(version: Version, size: dict[str, Any], rank: int, ranks: int) -> Sends:
    """Of one process, in a group whose other processes do not exist. Nothing travels, so its answer is wrong."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
    try:
        call = ready(version, {**size, "rank": rank, "ranks": ranks})
        with CommCounter() as sent, warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # operators that torch will rename
            call()
    finally:
        dist.destroy_process_group()
    return Sends(dict(sent.calls), sent.total)


def show_sent(pair: Pair, size: str = "cpu", ranks: Sequence[int] = (2, 8)) -> dict[str, list[Sends]]:
    """Show the calls of each version, and the bytes that a process sends; returns the counts of the first number.

    `ranks`: numbers of processes. If they send different amounts, `at most` stands before the largest.
    """
    counts = [count_sent(pair, size, number) for number in ranks]
    rows = []
    for version in pair.versions:
        by_rank = [count[version.label] for count in counts]
        rows.append([version.label, _call_list(by_rank[0][0]), *map(_most, by_rank)])
    headings = ["version", f"calls of process 0 of {ranks[0]}", *(f"sent, {number} processes" for number in ranks)]
    display(Markdown(f"**{pair.name}**, size {size}\n\n{table(headings, rows).data}"))
    return counts[0]


def _call_list(sends: Sends) -> str:
    names = {name: name.strip("_").replace("_base", "") for name in sends.calls}
    return ", ".join(f"{number} x {names[name]}" for name, number in sends.calls.items())


def _most(by_rank: list[Sends]) -> str:
    amounts = sorted(sends.bytes for sends in by_rank)
    return f"{'at most ' * (amounts[0] < amounts[-1])}{amounts[-1]:,} bytes"
