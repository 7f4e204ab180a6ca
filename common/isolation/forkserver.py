"""Forkservers: children are forked from them with torch imported, so each starts in a quarter of a second.

There is one for each set of modules that children need, started when it is first asked for. Where there is no
forkserver (Windows), children are spawned.
"""

import atexit
import errno
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from common.isolation import interrupt

CACHES = {"TRITON_CACHE_DIR": ".triton/cache", "CUPY_CACHE_DIR": ".cupy/kernel_cache"}  # variable, place below home
PLACES = ("_DIR", "_HOME", "_PATH")  # ends of the variables that say where something is
FEWEST_FILES = 64  # open files: with fewer the forkserver dies in the middle of a message
# Also what shapes without values need of torch (with sympy) and a median of NumPy: half a second of each child.
_TORCH = ["torch", "torch.fx.experimental.symbolic_shapes", "numpy.ma", "common.engine.run_alone"]
_META = [*_TORCH, "torch._dynamo"]  # sums and products of arrays without memory import it: a second
_TRITON = [*_META, "common.isolation.preloaded_triton", "common.xray.compilers"]
PRELOADED = {
    "torch": _TORCH,
    "interpreter": [*_META, "common.isolation.preloaded_interpreter"],
    "triton": _TRITON,
    "cuda": [*_TRITON, "common.isolation.preloaded_compilers"],
}
LAST = "common.isolation.preloaded_last"
INTERPRET = "TRITON_INTERPRET"  # Triton reads it at import, which is the server's
VARIABLES = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # otherwise torch.compile leaves a pool of processes behind
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # otherwise the import asks CUDA, which no child can use then
}
_HAS_FORKSERVER = "forkserver" in multiprocessing.get_all_start_methods()
context: Any = multiprocessing.get_context("forkserver" if _HAS_FORKSERVER else "spawn")
_states: dict[str, dict[str, Any]] = {}  # of the module's one ForkServer, as it was for each set of modules
_kind = "torch"


def prefer(kind: str) -> None:
    """The modules that the next children need: "torch", "triton" (to compile kernels), or "cuda" (torch.compile too).

    Where Triton interprets, a child is from the server "interpreter" whatever is preferred. A server that already runs
    with more than "triton" is kept for it.
    """
    global _kind
    _kind = "cuda" if kind == "triton" and "cuda" in _states else kind


def _switch(kind: str) -> None:
    """Make the module's ForkServer that of this set; the others keep running."""
    server: Any = forkserver._forkserver
    if kind not in _states:
        _states[kind] = vars(forkserver.ForkServer()) if _states else vars(server)
    server.__dict__ = _states[kind]
    context.set_forkserver_preload([*PRELOADED[kind], LAST])


def start(environment: dict[str, str]) -> None:
    """Start the forkserver for children with these variables, unless it runs. Raises OSError.

    It ignores the signals that interrupt a run: its parent ends it.
    """
    kind = "interpreter" if INTERPRET in environment else _kind
    _give_caches()
    os.environ.update(VARIABLES)
    if not _HAS_FORKSERVER:
        return
    import resource  # not in Windows

    if 0 <= (limit := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < FEWEST_FILES:
        fix = f"allow {FEWEST_FILES}, as by `ulimit -n {FEWEST_FILES}`"
        raise OSError(errno.EMFILE, f"only {limit} files may be open at once: {fix}")
    _switch(kind)
    resource_tracker.ensure_running()  # first, because starting it unblocks the signals
    with _block_signals(), without_choices({INTERPRET: "1"} if kind == "interpreter" else {}):
        forkserver.ensure_running()
    atexit.unregister(stop)
    atexit.register(stop)  # by itself it takes a second or two to end and keeps our output open


@contextmanager
def without_choices(instead: dict[str, str] | None = None) -> Iterator[None]:
    """Inside, a new process does not get what the user chose of Triton: to interpret, to be imprecise, to dump.

    It gets `instead`, and a child what its `environment` says. Only where a cache or a tool is, is left to the user.
    """
    names = [name for name in os.environ if name.startswith("TRITON_") and not name.endswith(PLACES)]
    chosen = {name: os.environ.pop(name) for name in names}
    os.environ.update(instead or {})
    try:
        yield
    finally:
        for name in instead or {}:
            del os.environ[name]
        os.environ.update(chosen)


@contextmanager
def _block_signals() -> Iterator[None]:
    """Inside, no signal that interrupts a run arrives."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, interrupt.SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _connect(fds: Sequence[int]) -> tuple[int, int]:
    """Ask for a child while no signal arrives.

    An exception in the middle would close a pipe that the child already has, and the child would print a traceback.
    """
    with _block_signals():
        return forkserver._forkserver.connect_to_new_process(fds)


if _HAS_FORKSERVER:
    forkserver.connect_to_new_process = _connect


def _give_caches() -> None:
    """If the home folder is not writable, compilers use a temporary cache folder, deleted when this process ends."""
    for variable, place in CACHES.items():
        path = Path.home() / place
        if variable not in os.environ and not _is_writable(path):
            folder = TemporaryDirectory(prefix="speed-of-light-", ignore_cleanup_errors=True)
            atexit.register(folder.cleanup)
            os.environ[variable] = folder.name


def _is_writable(path: Path) -> bool:
    """Whether such a folder could be created and written to."""
    try:
        with TemporaryFile(dir=next(folder for folder in (path, *path.parents) if folder.exists())):
            return True
    except OSError:
        return False


def stop() -> None:
    """End the forkservers that run, and wait for their end. The next `start` starts a new one."""
    server: Any = forkserver._forkserver
    for kind in _states:
        _switch(kind)
        if server._forkserver_pid is not None:
            with suppress(ProcessLookupError, ChildProcessError):  # it was ended already
                os.kill(server._forkserver_pid, signal.SIGKILL)
                server._stop()
