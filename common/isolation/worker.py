"""Run a function in its own process: receive its messages, end it if it hangs, report how it died.

The child's output goes to a file, so that it cannot disturb the table. Its last line helps to explain a death.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import psutil

from common.isolation import forkserver, interrupt
from common.isolation.pipe import MAY_COMPILE, Ask, End, ParentPipe, Report
from common.isolation.process_tree import KILL_TIMEOUT_S, adopt_orphans, descendants, end_all_but

DEADLINE_S = 120.0  # without a sign of progress
COMPILE_FACTOR = 5  # times as long after MAY_COMPILE
AT_WORK = 0.2  # of the time that a silent child computes, at least, if it does not wait; a busy machine gives it a part
OUTPUT_CHECK_S = 0.5  # how often a silent child's output file is checked
MOST_OUTPUT = 256 << 20  # bytes that a child may print, so that it cannot fill the disk
LAST_OUTPUT = 1 << 16  # bytes in which the last line is searched
NO_TO = "'int' object has no attribute 'to'"  # what a kernel's row.to(tl.int64) raises in Triton's interpreter
READER, BAD_BINARY = "triton/compiler/compiler.py", "device kernel image is invalid"
USE_CAST = ": in Triton's interpreter a loop counter is a Python int: write tl.cast(counter, dtype)"


class ChildFailed(Exception):
    """The child raised, died or hung: `end`; str() is one line that says how."""

    def __init__(self, reason: str, end: End = End.ENDED) -> None:
        super().__init__(reason)
        self.end = end


def one_line(error: BaseException) -> str:
    """An error as its first line, with the last place in a pair's file on its way."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    frames = [(Path(frame.filename).name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    places = [f" ({name}:{line})" for name, line in frames if name.startswith(("baseline_", "optimized_"))]
    hint = USE_CAST * (NO_TO in str(error)) + cache_hint(error)
    return _printable(": ".join([type(error).__name__, *lines[:1]]) + "".join(places[-1:]) + hint)


def cache_hint(error: BaseException) -> str:
    """Which folder to delete, of an error that Triton raises when it reads what an earlier process has compiled."""
    frames = traceback.extract_tb(error.__traceback__)
    is_reading = any(frame.filename.endswith(READER) and frame.name == "__init__" for frame in frames)
    folder = os.environ.get("TRITON_CACHE_DIR") or Path.home() / forkserver.CACHES["TRITON_CACHE_DIR"]
    return f": Triton's cache is damaged: delete {folder}" * (is_reading or BAD_BINARY in str(error))


def _printable(text: str) -> str:
    """Without characters that move a cursor, change a colour or cannot be encoded."""
    return "".join(character for character in text if character.isprintable())


def call(
    function: Callable[..., Any],
    *arguments: Any,
    environment: dict[str, str] | None = None,
    on_progress: Report = lambda stage, fraction: None,
    on_question: Ask = lambda question: None,
    deadline_s: float = DEADLINE_S,
) -> Any:
    """function(*arguments, parent) in a child process; returns its result. parent(stage, fraction) reports progress.

    parent.ask(question) returns what `on_question` returns here. The child's `environment` is set before it imports
    anything except torch. Raises ChildFailed if the child raises, dies, is silent for `deadline_s` (COMPILE_FACTOR
    times as long after MAY_COMPILE), or prints too much. In all cases every process that was started below this one
    meanwhile is ended, so only one call may run at a time.
    """
    with ExitStack() as stack:
        stack.callback(adopt_orphans, adopt_orphans())  # restores the previous state
        with _start_errors():
            forkserver.start(environment or {})
            folder = stack.enter_context(TemporaryDirectory(prefix="speed-of-light-", ignore_cleanup_errors=True))
            (log := Path(folder) / "output").touch()
        earlier_processes = descendants()
        parent_end, child_end = forkserver.context.Pipe()
        child_arguments = child_end, log, deadline_s, function, arguments, environment or {}
        process = forkserver.context.Process(target=_run_child, args=child_arguments)
        stack.callback(parent_end.close)
        stack.callback(_end_tree, process, earlier_processes)  # runs first
        # the forkserver may still be importing torch; where there is none, the child gets our variables
        with _start_errors(), interrupt.interruptible(), forkserver.without_choices():
            process.start()
        child_end.close()
        return _wait_for_result(process, parent_end, log, on_progress, on_question, deadline_s)


@contextmanager
def _start_errors() -> Iterator[None]:
    """Inside, a new process is prepared. Raises ChildFailed if this machine has no room for it."""
    try:
        yield
    except (OSError, EOFError) as error:  # EOFError: the server was killed
        problem = str(getattr(error, "strerror", None) or error)
        fix = f": set TMPDIR to a folder with a shorter path than {gettempdir()}" * ("AF_UNIX path" in problem)
        raise ChildFailed(f"no process can be started here ({problem}{fix})") from None


def _wait_for_result(
    process: Any, pipe: Connection, log: Path, on_progress: Report, on_question: Ask, deadline_s: float
) -> Any:
    last_report_s, timeout_s, worked_s = time.monotonic(), deadline_s, 0.0
    while True:
        remaining_s = last_report_s + timeout_s - time.monotonic()
        if log.stat().st_size > MOST_OUTPUT:
            raise ChildFailed(f"printed more than {MOST_OUTPUT >> 20} MiB")
        try:
            with interrupt.interruptible():
                ready_ends = wait([pipe, process.sentinel], min(max(remaining_s, 0.0), OUTPUT_CHECK_S))
                kind, *content = pipe.recv() if pipe in ready_ends else ("",)
        except Exception:  # noqa: BLE001 (the pipe has ended, in mid-message perhaps, or holds no message of ours)
            raise _child_failure(process, log) from None
        if kind == "result":
            return content[0]
        if kind == "error":
            raise ChildFailed(*content)
        if kind == "progress":
            stage, fraction = content
            last_report_s, timeout_s = time.monotonic(), deadline_s * (COMPILE_FACTOR if fraction == MAY_COMPILE else 1)
            worked_s = _work_s(process)
            on_progress(stage, 0.0 if fraction == MAY_COMPILE else fraction)
        elif kind == "ask":
            with suppress(OSError):  # the child that asked has ended, which the next turn of this loop finds
                pipe.send(on_question(*content))
        elif not process.is_alive() and not pipe.poll():
            raise _child_failure(process, log)
        elif remaining_s <= 0:  # though it was listened to: this process may have been stopped for as long
            is_at_work = _work_s(process) - worked_s > AT_WORK * timeout_s
            how = "too slow, or without end: at work, but " if is_at_work else "hung: "
            raise ChildFailed(f"{how}no progress for {timeout_s:.0f} s", End.HUNG)


def _work_s(process: Any) -> float:
    """Seconds of all cores that a child has computed."""
    with suppress(psutil.Error):  # it has ended
        times = psutil.Process(process.pid).cpu_times()
        return float(times.user + times.system)
    return 0.0


def _child_failure(process: Any, log: Path) -> ChildFailed:
    """How a dead child ended, and its last printed line."""
    process.join(5)
    code = process.exitcode
    how = "closed its pipe or wrote to it" if code is None else exit_text(code)
    return ChildFailed(how + _last_output_line(log), End.KILLED if code is not None and code < 0 else End.ENDED)


def exit_text(code: int) -> str:
    """How a process ended that was not done, by its exit code."""
    if code >= 0:
        return f"exited with status {code} before it was done"
    name = next((number.name for number in signal.Signals if number == -code), f"signal {-code}")
    return f"killed by {name}" + (": often the system had no memory left" if name == "SIGKILL" else "")


def _last_output_line(log: Path) -> str:
    """The printable part of the last non-empty line, in brackets."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_OUTPUT))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    line = _printable(next((line.strip() for line in reversed(lines) if line.strip()), ""))[:160]
    return f" ({line})" if line else ""


def _end_tree(process: Any, survivors: set[psutil.Process]) -> None:
    """End the child and all that it has started."""
    if process.pid is None:  # interrupted during the start: the forkserver may be about to fork it
        forkserver.stop()
    end_all_but(survivors)
    if process.pid is not None:
        process.join(KILL_TIMEOUT_S)


def _run_child(
    pipe: Connection, log: Path, deadline_s: float, function: Callable, arguments: tuple, environment: dict[str, str]
) -> None:
    try:
        _prepare_process(log, environment)
        result = function(*arguments, ParentPipe(pipe, deadline_s))
    except BaseException as error:  # noqa: BLE001 (SystemExit too: the parent tells its user)
        traceback.print_exc()
        pipe.send(("error", one_line(error), End.RAISED))
        sys.exit(1)
    pipe.send(("result", result))


def _prepare_process(log: Path, environment: dict[str, str]) -> None:
    """Prepare this new process for a pair, which may do anything in it."""
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.pop(forkserver.INTERPRET, None)  # its server's
    os.environ.update(environment)
    multiprocessing.set_start_method(None, force=True)  # a pair's own processes start as in a program of their own
    adopt_orphans()  # so that orphans of a pair stay below this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own: Ctrl-C reaches only the parent, which then ends the child
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupt.SIGNALS)  # blocked by the forkserver
    if sys.platform == "linux":
        with suppress(OSError):  # a container may forbid writing to /proc
            Path("/proc/self/oom_score_adj").write_text("1000")  # out of memory, the system must kill the pair first


def _end_with_parent() -> None:
    """End this process and its descendants when the parent dies.

    A child that hangs in C code and holds Python's lock remains.
    """
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    end_all_but(set())
    psutil.Process().kill()
