"""What a call may not do: change inputs, keep answers, read unwritten memory, leak threads or processes, compile.

(Settings: global_state.py.)
"""

import ast
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing import forkserver, resource_sharer, resource_tracker
from operator import itemgetter
from typing import Any

import psutil
import torch

from common.checks.arrays import (
    Tree,
    as_tensor,
    batches,
    has_arithmetic,
    has_repeats,
    is_array,
    join,
    leaves,
    memory_span,
    overlap_path,
    tensors,
)

# audit event (sys.addaudithook) that no warm call may raise -> the words for it
UNTIMELY_EVENTS = {
    "import": "imports {0}", "compile": "compiles Python code", "exec": "executes new Python code",
    "subprocess.Popen": "starts {0}", "os.posix_spawn": "starts {0}", "ctypes.dlopen": "loads {0}",
    "open": "writes to files",
}  # fmt: skip
END_S = 0.2  # in which workers that were told to end must have ended
TQDM = "tqdm_monitor"  # the sleeping thread of torch.compile's progress bar
_add_audit_hook = cache(sys.addaudithook)
_events: set[str] | None = None  # events since listening began; None if not listening


def changed_input(now: Tree, pristine: Tree) -> str:
    """The first input that has changed, bit for bit (NaN equals NaN); empty if none has."""
    rows = [(path, x, y) for (path, x), (_, y) in zip(tensors(now), tensors(pristine), strict=True)]
    for batch in batches(rows, itemgetter(1)):
        if len(batch) > 1:
            _, *columns = zip(*((path, x.reshape(-1), y.reshape(-1)) for path, x, y in batch), strict=True)
            if not _differ(*map(join, columns)):
                continue
        for path, current, original in batch:
            if _differ(current, original):
                return path
    return ""


def _differ(current: torch.Tensor, original: torch.Tensor) -> bool:
    if current.is_floating_point() and not has_arithmetic(current):
        current, original = current.view(torch.uint8), original.view(torch.uint8)
    return not bool(((current == original) | ((current != current) & (original != original))).all())


def poison_outputs(inputs: Tree) -> None:
    """Fill `out*`, which may be written, so that an earlier candidate's answer cannot be returned."""
    for path, tensor in tensors(inputs):
        if path.startswith("out"):
            poison(tensor)


def poison_answer(answer: Tree, inputs: Tree) -> None:
    """Overwrite a returned answer after it was examined: if it is kept, recycled or replayed, it is now wrong."""
    spans = [memory_span(tensor) for _, tensor in tensors(inputs)] if overlap_path(inputs, answer) else []
    for _, leaf in leaves(answer):
        flags = getattr(leaf, "flags", None)  # of NumPy's and CuPy's arrays
        if is_array(leaf) and (flags is None or (flags.c_contiguous and getattr(flags, "writeable", True))):
            tensor = as_tensor(leaf)
            first, last = memory_span(tensor)
            if not has_repeats(tensor) and not any(first < end and begin < last for begin, end in spans):
                poison(tensor)


def poison(tensor: torch.Tensor) -> None:
    """Fill with NaN; a type without NaN with -1, or True."""
    with torch.inference_mode():  # tensors made in this mode can be written only in it
        tensor.fill_(float("nan") if tensor.is_floating_point() else -1 if tensor.dtype != torch.bool else True)


class LeakDetector:
    """The threads and processes that existed before any version was loaded, or were named since."""

    def __init__(self) -> None:
        self._existing = _company()

    def find_new(self) -> str:
        """What was started since and still exists, each named once; empty if nothing.

        Threads and processes that were told to end have a moment for it.
        """
        end, before = time.monotonic() + END_S, self._existing
        self._existing = _company()
        while any(map(set.difference, self._existing, before)) and time.monotonic() < end:
            time.sleep(END_S / 10)
            self._existing = _company()
        thread_names = {thread.ident: thread.name for thread in threading.enumerate()}  # without those of _thread
        threads, processes = map(set.difference, self._existing, before)
        leaks = {
            "threads": sorted({thread_names.get(thread, "one without a name") for thread in threads} - {TQDM}),
            "processes": sorted(filter(None, map(_process_name, processes))),
        }
        return ", ".join(f"{what}: {', '.join(names)}" for what, names in leaks.items() if names)


def _company() -> tuple[set[int], set[int]]:
    """The threads and the child processes of this process, without those that serve multiprocessing and only wait."""
    sharer: Any = vars(resource_sharer).get("_resource_sharer")
    servers: tuple[Any, Any] = resource_tracker._resource_tracker, forkserver._forkserver
    pids = {getattr(servers[0], "_pid", None), getattr(servers[1], "_forkserver_pid", None)}
    thread = getattr(getattr(sharer, "_thread", None), "ident", None)
    return set(sys._current_frames()) - {thread}, children() - pids


def children() -> set[int]:
    """Child processes of this process, adopted orphans included."""
    tasks = f"/proc/{os.getpid()}/task"
    if not os.path.exists(f"{tasks}/{threading.get_native_id()}/children"):  # the system has no such list
        return {child.pid for child in psutil.Process().children()}
    pids: set[int] = set()
    for task in os.listdir(tasks):
        with suppress(OSError), open(f"{tasks}/{task}/children", "rb", 0) as file:  # that thread may have ended
            pids.update(map(int, file.read().split()))
    return pids


def _process_name(pid: int) -> str:
    """The name of a process; empty if it has ended, even if its parent has not collected its status."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.name()} ({pid})"
    return ""


def untimely_actions(call: Callable[[], Any]) -> set[str]:
    """What a call does that a warm call must not do: compile, tune, import, start processes.

    Afterwards every audit event costs this process a little: so call this after all measurements.
    """
    global _events
    _add_audit_hook(_audit)
    _events = set()
    try:
        call()
        return _events
    finally:
        _events = None


def listen_to_triton() -> None:
    """Make Triton report compiling and tuning, if a version has imported it."""
    triton: Any = sys.modules.get("triton")
    if triton:
        triton.knobs.runtime.jit_post_compile_hook = _with_report(lambda **facts: None, "compiles a Triton kernel")
        triton.testing.do_bench = _with_report(triton.testing.do_bench, "tunes a Triton kernel")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _events is None or event not in UNTIMELY_EVENTS:
        return
    reads = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
    # ast.literal_eval (reads each .npy file's header) makes a syntax tree, not code
    caller = sys._getframe(1).f_back
    if not (reads or (event == "compile" and caller and caller.f_code is ast.literal_eval.__code__)):
        _events.add(UNTIMELY_EVENTS[event].format(*(f"{argument!s:.60}" for argument in arguments[:1])))


def _with_report(function: Callable[..., Any], action: str) -> Callable[..., Any]:
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        if _events is not None:
            _events.add(action)
        return function(*arguments, **keywords)

    return wrapper
