"""Ctrl-C ends a run where it waits for a pair; anywhere else it is noted, so that it tears nothing.

An exception that can strike anywhere leaves half a table, or an unknown process; and where it strikes in
a destructor or in an import, Python prints a traceback and drops it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# a closed terminal and a polite kill are taken for Ctrl-C
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Note:  # never instantiated: signals have one handler a process
    """What the handler knows."""

    held = False
    came = False
    waits = False


def _handle(number: int, frame: Any) -> None:
    waits, _Note.came, _Note.waits = _Note.waits, True, False  # what it raises is tidied up after in peace
    if waits:
        raise KeyboardInterrupt


@contextmanager
def held_back() -> Iterator[None]:
    """Inside, Ctrl-C and its like raise KeyboardInterrupt in `waiting` alone, at the latest in the next one."""
    if threading.current_thread() is not threading.main_thread() or _Note.held:
        yield  # signals are the main thread's; or this is done already
        return
    found = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in found.items() if handler not in (signal.SIG_IGN, None)}  # nohup's
    try:
        _Note.held = True
        for number in before:
            signal.signal(number, _handle)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _Note.held = _Note.came = False


@contextmanager
def waiting() -> Iterator[None]:
    """Where Ctrl-C may strike."""
    _Note.waits = True
    try:
        if _Note.came:
            raise KeyboardInterrupt
        yield
    finally:
        _Note.waits = False


def came() -> bool:
    """Was there a Ctrl-C, whether it has struck or not, since `held_back`?"""
    return _Note.came


def ignore() -> None:
    """From here on the program has nothing left to do but to exit."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
