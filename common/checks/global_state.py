"""Settings that change numbers, or that honest programs often leave changed: of torch, NumPy, Python and the process.

A change is found after each call of a version, undone, and named in the verdict. (The runs alone, engine/run_alone.py,
show replaced functions, tracers, and other ways to slow the others down.)
"""

import gc
import os
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from inspect import isfunction
from operator import is_
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

Setting = tuple[Callable[[], Any], Callable[..., Any]]  # (read it, set it from the value or from a tuple's values)

# Settings of torch's core for its libraries and for attention. (Only another API reads TF32.)
_GROUPS = "blas|cpu|cublas|cudnn|deterministic|linalg|math|mkldnn|nnpack"
_SWITCH = re.compile(rf"_get_(?!\w+tf32)((?:{_GROUPS})_\w+|\w+_sdp_enabled)")
_backends: Any = torch.backends
_FLOAT32 = (_backends.cuda.matmul, _backends.cudnn.conv, _backends.mkldnn.matmul)
JUDGES = ("common.checks.", "common.engine.")
# torch.compile's own notes
_LIBRARY_VARIABLES = ("TORCHINDUCTOR_", "_TORCHINDUCTOR_", "TRITON_CACHE_DIR", "TRITON_PTXAS_PATH")


def _switches() -> dict[str, Setting]:
    """Every setting with a pair of functions: cudnn_benchmark, flash_sdp_enabled, and so on."""
    core = vars(torch._C)
    read = {match[1]: core[match[0]] for match in map(_SWITCH.fullmatch, core) if match}
    attention = {name: core.get(f"_set_sdp_use_{name.removesuffix('_sdp_enabled')}") for name in read}
    write = {name: core.get(f"_set_{name}", attention[name]) for name in read}
    return {name: (read[name], setter) for name, setter in write.items() if setter}


def _precisions() -> list[str]:
    """TF32 and similar settings, read by the API that works however they were set."""
    return [backend.fp32_precision.replace("none", "ieee") for backend in _FLOAT32]


def _set_precisions(values: list[str]) -> None:
    torch.set_float32_matmul_precision("highest")  # resets the older API's own state
    for backend, value in zip(_FLOAT32, values, strict=True):
        backend.fp32_precision = value


@cache
def _pools() -> list[Any]:
    """NumPy's BLAS and OpenMP, as loaded before any version."""
    return list(ThreadpoolController().lib_controllers)


def _set_pools(values: list[int]) -> None:
    for pool, value in zip(_pools(), values, strict=True):
        pool.set_num_threads(value)


def _variables() -> dict[str, str]:
    """Those that no library writes. Decoded only if one has changed: a run asks thousands of times."""
    raw: dict[Any, Any] = getattr(os.environ, "_data", {})
    if not raw or raw != _decoded[0]:
        _decoded[:] = dict(raw), _decode()
    return _decoded[1]


_decoded: list[dict[Any, Any]] = [{}, {}]  # the variables as the system has them, and what `_decode` made of them


def _decode() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_LIBRARY_VARIABLES)}


def _set_variables(values: dict[str, str]) -> None:
    for name in _variables().keys() - values.keys():
        del os.environ[name]
    os.environ.update(values)


def _flushes_denormals() -> bool:
    return bool(torch.full((), 1e-310, dtype=torch.float64) * 1 == 0)


SETTINGS: dict[str, Setting] = {
    **_switches(),
    "the precision of float32 products": (_precisions, _set_precisions),
    "the number of threads": (torch.get_num_threads, torch.set_num_threads),
    "the threads of BLAS and OpenMP": (lambda: [pool.get_num_threads() for pool in _pools()], _set_pools),
    "the default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "the default device": (torch.get_default_device, lambda value: torch.set_default_device(None)),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch's profiler": (torch._C._autograd._profiler_enabled, lambda value: torch._C._autograd._disable_profiler()),
    "NumPy's error handling": (np.geterr, lambda value: np.seterr(**value)),
    **{f"autocast on {kind}": (partial(torch.is_autocast_enabled, kind), partial(torch.set_autocast_enabled, kind))
       for kind in ("cpu", "cuda")},
    "flushing of denormals": (_flushes_denormals, torch.set_flush_denormal),
    "the current stream": (
        lambda: torch.cuda.current_stream() if torch.cuda.is_initialized() else None, torch.cuda.set_stream,
    ),
    "the random seed": (torch.initial_seed, torch.manual_seed),
    "garbage collection": (gc.isenabled, lambda value: gc.enable() if value else gc.disable()),
    "environment variables": (_variables, _set_variables),
}  # fmt: skip


def judging_functions() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(A module's names, its functions by name): all functions that decide whether an answer is right."""
    modules = [vars(module) for name, module in [*sys.modules.items()] if name.startswith(JUDGES)]
    return [(names, {name: value for name, value in names.items() if isfunction(value)}) for names in modules]


class GlobalState:
    """The settings before any version was loaded."""

    def __init__(self) -> None:
        self._settings = {name: read() for name, (read, _) in SETTINGS.items()}
        self._functions = judging_functions()

    def accept_seed(self) -> None:
        """The harness has set the random seed: take it as found."""
        self._settings["the random seed"] = torch.initial_seed()

    def restore(self) -> str:
        """What has changed since, now undone; empty if nothing."""
        changes = []
        for name, (read, write) in SETTINGS.items():
            before, after = self._settings[name], read()
            if before is None:  # CUDA was not initialized then
                self._settings[name] = after
            elif after != before:
                changes.append(f"{name} {_change_text(before, after)}")
                write(*before) if isinstance(before, tuple) else write(before)
        for names, functions in self._functions:
            if all(map(is_, map(names.get, functions), functions.values())):  # the usual case, without a loop
                continue
            changes += [f"the harness's own {name}" for name in functions if names.get(name) is not functions[name]]
            names.update(functions)
        return ", ".join(changes)


def _change_text(before: Any, after: Any) -> str:
    if isinstance(before, dict):
        return " ".join(sorted(name for name in before | after if before.get(name) != after.get(name)))
    return f"{before} -> {after}"
