"""Run a function in a process of its own: listen to it, stop it when it hangs, say how it died.

From a forkserver that has torch imported a child starts in a quarter of a second; where there is none (Windows) it is
spawned. What the child prints goes to a file, so that it cannot spoil the table; its last line helps explain a death.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

DEADLINE_S = 120.0  # without a sign of progress
_FORKSERVER = "forkserver" in multiprocessing.get_all_start_methods()
_context: Any = multiprocessing.get_context("forkserver" if _FORKSERVER else "spawn")


class Death(Exception):
    """The child raised, died or hung; str() says which, in one line."""


def one_line(error: BaseException) -> str:
    """An error as its first line, with the last place in a pair's file that it passed through."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    frames = [(Path(frame.filename).name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    places = [f" ({name}:{line})" for name, line in frames if name.startswith(("baseline_", "optimized_"))]
    return ": ".join([type(error).__name__, *lines[:1]]) + "".join(places[-1:])


def call(
    function: Callable[..., Any],
    *arguments: Any,
    environment: dict[str, str] | None = None,
    on_progress: Callable[[str, float], None] = lambda stage, fraction: None,
    deadline_s: float = DEADLINE_S,
) -> Any:
    """function(*arguments, say) in a child, where say(stage, fraction) reports progress; returns its result.

    `environment` is set in the child before it imports anything but torch. Raises Death when the child raises, dies,
    or is silent for `deadline_s`. Whatever happens, the child and its process group are gone afterwards.
    """
    if _FORKSERVER:
        _start_server()
    with tempfile.TemporaryDirectory(prefix="speed-of-light-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "output"
        ours, theirs = _context.Pipe(duplex=False)
        process = _context.Process(target=_child, args=(theirs, log, function, arguments, environment or {}))
        process.start()
        theirs.close()
        try:
            return _listen(process, ours, log, on_progress, deadline_s)
        finally:
            _end(process)
            ours.close()


def _start_server() -> None:
    """Start the forkserver, if it is not there, deaf to Ctrl-C: its interrupted imports would print a traceback."""
    _context.set_forkserver_preload(["torch", "torch._inductor.config", "common.measure"])
    resource_tracker.ensure_running()  # first, because starting it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _listen(
    process: Any, pipe: Connection, log: Path, on_progress: Callable[[str, float], None], deadline_s: float
) -> Any:
    heard = time.monotonic()
    while True:
        left = heard + deadline_s - time.monotonic()
        if left <= 0:
            raise Death(f"hung: no progress for {deadline_s:.0f} s")
        if pipe in wait([pipe, process.sentinel], left):
            try:
                kind, *content = pipe.recv()
            except EOFError:
                raise Death(_cause(process, log)) from None
            heard = time.monotonic()
            if kind == "result":
                return content[0]
            if kind == "error":
                raise Death(content[0])
            on_progress(*content)
        elif not process.is_alive():
            raise Death(_cause(process, log))


def _cause(process: Any, log: Path) -> str:
    """How a dead child ended, and the last thing it printed."""
    process.join(5)
    code = process.exitcode
    if code is None:
        how = "closed its pipe"
    elif code < 0:
        name = signal.Signals(-code).name
        how = f"killed by {name}" + (": often the system had no memory left" if name == "SIGKILL" else "")
    else:
        how = f"exited with status {code} before it was done"
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return how + (f" ({''.join(c for c in said if c.isprintable())[:160]})" if said else "")


def _end(process: Any) -> None:
    """Kill the child and its process group; the group outlives the child where the child has left processes behind."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):  # nobody is left, or the child had no time to make a group
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _child(
    pipe: Connection, log: Path, function: Callable[..., Any], arguments: tuple[Any, ...], environment: dict[str, str]
) -> None:
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own: Ctrl-C reaches the parent alone, which then ends the group
    if not log.parent.exists():
        return  # the parent was interrupted while this child was on its way
    os.environ.update(environment)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        result = function(*arguments, lambda stage, fraction: pipe.send(("say", stage, fraction)))
    except BaseException as error:  # noqa: BLE001 (SystemExit too: the parent tells its user)
        traceback.print_exc()
        pipe.send(("error", one_line(error)))
        sys.exit(1)
    pipe.send(("result", result))
