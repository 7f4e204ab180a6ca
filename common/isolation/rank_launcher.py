"""Run a function once per rank, in processes that torch's elastic launcher starts, as torchrun does.

The process that calls `launch` leads: it starts the ranks and watches them. They are forked from it, so torch is
imported already; therefore it must not have used a GPU. Whatever happens to one rank ends all, and names that rank.
"""

import faulthandler
import linecache
import multiprocessing
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import RawArray
from pathlib import Path
from typing import Any

from common.isolation.pipe import End, ParentPipe
from common.isolation.worker import exit_text, one_line

HOST = "127.0.0.1"
DEADLINE_SHARE = 0.75  # of the parent's deadline, after which ranks without progress are asked where they are
WATCH_INTERVAL_S, REPLY_S = 0.05, 0.5  # between two looks at the ranks; for their replies
FORK_S = 0.001  # between two looks at whether all ranks have been forked
FRAME = re.compile(r'File "(.+)", line (\d+) in (\w+)')  # as faulthandler prints it, innermost first


class RanksDied(Exception):
    """A rank died; str() is one line that names it."""


class OutOfStep(BaseException):
    """The ranks no longer do the same: the group cannot go on. str() names the rank and what it did."""


class RankPipe(ParentPipe):
    """A rank's pipe to the parent: only rank 0 reports progress and asks; every rank may fail."""

    def __init__(self, parent: ParentPipe, rank: int, steps: Any) -> None:
        self._parent, self._rank, self._steps = parent, rank, steps
        self.deadline_s = parent.deadline_s

    def __call__(self, stage: str, fraction: float) -> None:
        self.step()
        if self._rank == 0:
            self._parent(stage, fraction)

    def step(self) -> None:
        """This rank goes on."""
        self._steps[self._rank] += 1

    def ask(self, question: str) -> Any:
        return self._parent.ask(question)

    def fail(self, reason: str, end: End = End.RAISED) -> None:
        self._parent.fail(reason, end)


class _RankGroup:
    """What the leader and its ranks share: steps, process numbers, whether each is done, files for their stacks."""

    def __init__(self, count: int, folder: str) -> None:
        self.steps, self.pids, self.done = RawArray("q", count), RawArray("q", count), RawArray("b", count)
        self.stacks = [Path(folder) / f"stack.{rank}" for rank in range(count)]

    def watch(self, parent: ParentPipe) -> None:
        """Fail if a rank has ended early, or if no rank goes on.

        Exit codes are those that the launcher has found. To ask for one (as active_children does) would take it from
        the launcher, which asks in another thread and then fails.
        """
        last_steps, last_step_s, children = [*self.steps], time.monotonic(), dict[int | None, Any]()
        while not all(self.done):
            time.sleep(WATCH_INTERVAL_S)
            children |= {child.pid: child._popen for child in [*multiprocessing.process._children]}  # type: ignore[attr-defined]
            codes = {rank: children[pid].returncode for rank, pid in enumerate(self.pids) if pid in children}
            ended = [rank for rank, code in codes.items() if code is not None and not self.done[rank]]
            if ended:  # not first: what the launcher has ended because of another
                rank = min(ended, key=lambda rank: codes[rank] == -signal.SIGTERM)
                return parent.fail(*_early_end(rank, codes[rank]))
            if [*self.steps] != last_steps:
                last_steps, last_step_s = [*self.steps], time.monotonic()
            elif time.monotonic() - last_step_s > DEADLINE_SHARE * parent.deadline_s:
                return parent.fail(f"hung: {self.rank_places()}", End.HUNG)
        return None

    def rank_places(self) -> str:
        """Where each rank is; those that do not wait for others come first."""
        for pid in filter(None, self.pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
        time.sleep(REPLY_S)
        places = [(*_rank_place(path.read_text(errors="replace")), rank) for rank, path in enumerate(self.stacks)]
        return "; ".join(f"rank {rank} {place}" for _, place, rank in sorted(places, key=lambda place: place[0]))


def _early_end(rank: int, code: int) -> tuple[str, End]:
    hint = ": often a message is longer than its buffer, or ranks call collectives in another order"
    cause = f"rank {rank}: {exit_text(code)}{hint if code == -signal.SIGABRT else ''}"
    return cause, End.KILLED if code < 0 else End.ENDED


def _rank_place(stack: str) -> tuple[bool, str]:
    """(Whether this rank waits for others, where it is in words.)"""
    frames = [(Path(path), int(number), name) for path, number, name in FRAME.findall(stack)]
    if not frames:
        return False, "does not respond"
    is_pair_file = [path.name.startswith(("baseline_", "optimized_")) for path, _, _ in frames]
    pair_frame = is_pair_file.index(True) if any(is_pair_file) else len(frames)
    calls = [name for path, _, name in frames[:pair_frame] if "distributed" in path.parts and name != "wrapper"]
    if pair_frame == len(frames):
        if any(path.name == "ranks.py" for path, _, _ in frames):
            return True, "has come back and waits for the others"
        return False, f"is in {frames[0][0].name}:{frames[0][1]}"
    path, number, _ = frames[pair_frame]
    line = linecache.getline(str(path), number).strip()
    return bool(calls), f"{f'waits in {calls[0]}' if calls else 'is'} at {path.name}:{number}: {line}"


def launch(function: Callable[..., Any], count: int, parent: ParentPipe, *arguments: Any) -> Any:
    """function(*arguments, RankPipe) in `count` processes of one group; returns the result of rank 0.

    The processes have the variables of torchrun (RANK, WORLD_SIZE, MASTER_ADDR ...). Raises RanksDied.
    """
    from torch.distributed import TCPStore
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    with tempfile.TemporaryDirectory(prefix="speed-of-light-", ignore_cleanup_errors=True) as folder:
        group = _RankGroup(count, folder)
        store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False, multi_tenant=True)  # finds a free port
        # "static": this process knows of all ranks. To agree with others on who takes part takes half a second
        config = LaunchConfig(
            min_nodes=1, max_nodes=1, nproc_per_node=count, run_id="speed-of-light", rdzv_backend="static",
            rdzv_endpoint=f"{HOST}:{store.port}", rdzv_configs={"rank": 0}, local_addr=HOST, start_method="fork",
            max_restarts=0, monitor_interval=WATCH_INTERVAL_S, logs_specs=DefaultLogsSpecs(log_dir=folder),
        )  # fmt: skip
        threading.Thread(target=group.watch, args=(parent,), daemon=True).start()
        try:
            results: dict[int, Any] = elastic_launch(config, _run_rank)(function, arguments, parent, group)
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            reason, end = _early_end(rank, failure.exitcode)
            parent.fail(reason, end)
            raise RanksDied(reason) from None
        if not all(group.done):
            raise RanksDied(f"rank {[*group.done].index(0)}: {exit_text(0)}")
        return results[0]


def _run_rank(function: Callable[..., Any], arguments: tuple[Any, ...], parent: ParentPipe, group: _RankGroup) -> Any:
    rank = int(os.environ["RANK"])
    group.pids[rank] = os.getpid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):  # the leader's handlers are the launcher's
        signal.signal(number, signal.SIG_DFL)
    while not all(group.pids):  # threads of the leader answer a rank that joins: a fork meanwhile may copy a held lock
        time.sleep(FORK_S)
    with group.stacks[rank].open("w") as file:
        faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
        try:
            result = function(*arguments, RankPipe(parent, rank, group.steps))
        except BaseException as error:
            parent.fail(str(error) if isinstance(error, OutOfStep) else f"rank {rank}: {one_line(error)}")
            raise
        faulthandler.unregister(signal.SIGUSR1)
    group.done[rank] = True
    return result if rank == 0 else None
