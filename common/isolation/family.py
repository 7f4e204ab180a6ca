"""The processes below this one, and the end of those that a child leaves behind.

A process may leave its group, its session and its parent. On Linux an orphan still falls to the nearest ancestor that
adopts orphans, and stays in the family; elsewhere only those are found whose parents live.
"""

import ctypes
import os
import sys
import time
from contextlib import suppress

import psutil

PATIENCE_S = 10.0  # a killed process may be in the kernel for so long, giving its memory back
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37  # linux/prctl.h


def family() -> set[psutil.Process]:
    """Every process below this one."""
    return set(psutil.Process().children(recursive=True))


def adopt_orphans(on: bool = True) -> bool:
    """Let orphans of this family fall to this process, or no longer; returns whether they did."""
    if sys.platform != "linux":
        return False
    prctl, before = ctypes.CDLL(None).prctl, ctypes.c_int()
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
    return bool(before.value)


def end_all_but(kept: set[psutil.Process]) -> None:
    """Kill the family but for `kept`, and whoever it starts meanwhile, and see them gone.

    Twice nobody is left: one that ends while the family is looked at hides those below it.
    """
    until, looks = time.monotonic() + PATIENCE_S, 0
    while looks < 2 and time.monotonic() < until:
        left = family() - kept
        looks = 0 if left else looks + 1
        for process in left:
            with suppress(psutil.Error):  # gone since; or, with privileges of its own, not ours to end
                process.kill()
            if hasattr(os, "WNOHANG"):
                with suppress(ChildProcessError):  # its own parent asks how it ended
                    os.waitpid(process.pid, os.WNOHANG)
        time.sleep(0.005)
