"""The descendants of this process, and the end of those that a child leaves behind.

A process may leave its group, its session and its parent. On Linux an orphan becomes a child of the nearest ancestor
that adopts orphans, so it remains a descendant. Elsewhere only processes with a living parent are found.
"""

import ctypes
import os
import sys
import time
from contextlib import suppress

import psutil

KILL_TIMEOUT_S = 10.0  # a killed process may stay in the kernel this long while its memory is released
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37  # linux/prctl.h


def descendants() -> set[psutil.Process]:
    """All descendants of this process."""
    return set(psutil.Process().children(recursive=True))


def adopt_orphans(on: bool = True) -> bool:
    """Let this process adopt orphans among its descendants, or not. Returns whether it did before."""
    if sys.platform != "linux":
        return False
    prctl, before = ctypes.CDLL(None).prctl, ctypes.c_int()
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
    return bool(before.value)


def end_all_but(survivors: set[psutil.Process]) -> None:
    """Kill all descendants except `kept`, also new ones, and wait for their end.

    Two looks must find none: a process that ends during a look hides its descendants.
    """
    deadline, looks = time.monotonic() + KILL_TIMEOUT_S, 0
    while looks < 2 and time.monotonic() < deadline:
        processes = descendants() - survivors
        looks = 0 if processes else looks + 1
        for process in processes:
            with suppress(psutil.Error):  # it has ended, or it has privileges of its own
                process.kill()
            if hasattr(os, "WNOHANG"):
                with suppress(ChildProcessError):  # its own parent collects its status
                    os.waitpid(process.pid, os.WNOHANG)
        time.sleep(0.005)
