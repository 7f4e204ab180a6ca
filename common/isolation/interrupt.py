"""Ctrl-C ends a run while it waits for a pair. At other times it is only noted.

An exception at any place could leave half a table or an unknown process. In a destructor or in an import Python prints
a traceback and ignores the exception.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# a closed terminal and a plain kill count as Ctrl-C
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _State:  # never instantiated: signals have one handler a process
    """The state of the handler."""

    is_held = False
    has_arrived = False
    is_waiting = False


def _handle(number: int, frame: Any) -> None:
    was_waiting = _State.is_waiting
    _State.has_arrived, _State.is_waiting = True, False  # the code after the exception may tidy up undisturbed
    if was_waiting:
        raise KeyboardInterrupt


@contextmanager
def hold_signals() -> Iterator[None]:
    """Inside, signals like Ctrl-C raise KeyboardInterrupt only in `interruptible`, at the latest in the next one."""
    if threading.current_thread() is not threading.main_thread() or _State.is_held:
        yield  # signals belong to the main thread; or this is active already
        return
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = {
        number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)
    }  # nohup's
    try:
        _State.is_held = True
        for number in before:
            signal.signal(number, _handle)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _State.is_held = _State.has_arrived = False


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, Ctrl-C may raise KeyboardInterrupt."""
    _State.is_waiting = True
    try:
        if _State.has_arrived:
            raise KeyboardInterrupt
        yield
    finally:
        _State.is_waiting = False


def was_interrupted() -> bool:
    """Whether Ctrl-C came since `hold_signals`, raised or not."""
    return _State.has_arrived


def ignore_signals() -> None:
    """Ignore signals from here on: only the exit is left."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
