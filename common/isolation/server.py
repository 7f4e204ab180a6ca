"""The process that children are forked from: with torch imported, so that one starts in a quarter of a second.

Where there is no forkserver (Windows) they are spawned.
"""

import atexit
import multiprocessing
import os
import signal
from multiprocessing import forkserver, resource_tracker
from typing import Any

from common.isolation import interrupt

PRELOADED = ["torch", "common.engine.measure"]  # not Triton, which chooses its interpreter when it is imported
_THERE_IS_ONE = "forkserver" in multiprocessing.get_all_start_methods()
context: Any = multiprocessing.get_context("forkserver" if _THERE_IS_ONE else "spawn")


def start() -> None:
    """Start the forkserver, if it is not there, deaf to what interrupts a run: its parent ends it."""
    if not _THERE_IS_ONE:
        return
    context.set_forkserver_preload(PRELOADED)
    resource_tracker.ensure_running()  # first, because starting it unblocks the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, interrupt.SIGNALS)
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    atexit.unregister(stop)
    atexit.register(stop)  # left to itself it takes a second or two to end, and keeps our output open


def stop() -> None:
    """End the forkserver, if it is there, and see it gone; the next `start` starts another."""
    server: Any = forkserver._forkserver
    if _THERE_IS_ONE and server._forkserver_pid is not None:
        os.kill(server._forkserver_pid, signal.SIGKILL)
        server._stop()
