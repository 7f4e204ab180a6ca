"""The process that children are forked from: with torch imported, so that one starts in a quarter of a second.

Where there is no forkserver (Windows) they are spawned.
"""

import atexit
import errno
import multiprocessing
import os
import signal
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from common.isolation import interrupt

CACHES = {"TRITON_CACHE_DIR": ".triton/cache", "CUPY_CACHE_DIR": ".cupy/kernel_cache"}  # variable, place below home
FEWEST_FILES = 64  # open at once: with fewer the server dies in the middle of a message
PRELOADED = ["torch", "common.engine.alone"]
COMPILERS = ["common.isolation.compilers"]
VARIABLES = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # else torch.compile leaves a pool of processes behind
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # else importing it asks CUDA, which no child can then use
}
_preloads: list[str] = [*PRELOADED]
_THERE_IS_ONE = "forkserver" in multiprocessing.get_all_start_methods()
context: Any = multiprocessing.get_context("forkserver" if _THERE_IS_ONE else "spawn")


def prefer(device: str) -> None:
    """From the next `start` on children are for this device: on a GPU with the compilers imported."""
    wanted = [*PRELOADED, *(COMPILERS if device.startswith("cuda") else [])]
    if wanted != _preloads:
        stop()
        _preloads[:] = wanted


def start(environment: dict[str, str]) -> None:
    """Start the forkserver that children with such variables need, if it is not there. Raises OSError.

    It is deaf to what interrupts a run: its parent ends it.
    """
    if "TRITON_INTERPRET" in environment:  # as it decides when it is imported: not before in the child, then
        prefer("cpu")
    _give_caches()
    os.environ.update(VARIABLES)
    if not _THERE_IS_ONE:
        return
    import resource  # not on Windows

    if 0 <= (most := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < FEWEST_FILES:
        allow = f"allow {FEWEST_FILES}, as by `ulimit -n {FEWEST_FILES}`"
        raise OSError(errno.EMFILE, f"only {most} files may be open at once: {allow}")
    context.set_forkserver_preload(_preloads)
    resource_tracker.ensure_running()  # first, because starting it unblocks the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, interrupt.SIGNALS)
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    atexit.unregister(stop)
    atexit.register(stop)  # left to itself it takes a second or two to end, and keeps our output open


def _give_caches() -> None:
    """Where a home cannot be written to, compilers keep what they have compiled in a folder that ends with us."""
    for variable, place in CACHES.items():
        path = Path.home() / place
        if variable not in os.environ and not _is_writable(path):
            folder = TemporaryDirectory(prefix="speed-of-light-", ignore_cleanup_errors=True)
            atexit.register(folder.cleanup)
            os.environ[variable] = folder.name


def _is_writable(path: Path) -> bool:
    """Could such a folder be made, and files in it?"""
    try:
        with TemporaryFile(dir=next(folder for folder in (path, *path.parents) if folder.exists())):
            return True
    except OSError:
        return False


def stop() -> None:
    """End the forkserver, if it is there, and see it gone; the next `start` starts another."""
    server: Any = forkserver._forkserver
    if _THERE_IS_ONE and server._forkserver_pid is not None:
        os.kill(server._forkserver_pid, signal.SIGKILL)
        server._stop()
