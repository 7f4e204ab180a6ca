"""The settings that could favour one arm, of torch, NumPy, Python and the process: how to read and put back each."""

import gc
import os
import signal
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _pop_mode

Setting = tuple[Callable[[], Any], Callable[[Any], Any]]  # how to read it, how to put it back

_backends: Any = torch.backends
_cuda: Any = torch.backends.cuda
_CUDNN = ("benchmark", "deterministic", "enabled")
_FLOAT32 = (_backends.cuda.matmul, _backends.cudnn.conv, _backends.mkldnn.matmul)
# torch.compile's notes to itself
_LIBRARY_VARIABLES = ("TORCHINDUCTOR_", "_TORCHINDUCTOR_", "TRITON_CACHE_DIR", "TRITON_PTXAS_PATH")


def _attribute(module: Any, name: str) -> Setting:
    return (lambda: getattr(module, name)), (lambda value: setattr(module, name, value))


def _precisions() -> list[str]:
    """TF32 and its like, by the API that is readable whichever way they were set."""
    return [backend.fp32_precision.replace("none", "ieee") for backend in _FLOAT32]


def _set_precisions(values: list[str]) -> None:
    torch.set_float32_matmul_precision("highest")  # the older API's own memory of it
    for backend, value in zip(_FLOAT32, values, strict=True):
        backend.fp32_precision = value


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_LIBRARY_VARIABLES)}


def _set_variables(values: dict[str, str]) -> None:
    for name in _variables().keys() - values.keys():
        del os.environ[name]
    os.environ.update(values)


def _set_collection(value: tuple[int, ...]) -> None:
    gc.enable() if value[0] else gc.disable()
    gc.set_threshold(*value[1:])


def _modes() -> tuple[int, int, bool]:
    """How many overrides of functions and of operations are in force; are there hooks on what autograd saves?"""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack(), hooks is not None


def _leave_modes(before: tuple[int, int, bool]) -> None:
    while torch._C._len_torch_function_stack() > before[0]:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > before[1]:
        _pop_mode()
    while not before[2] and torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        torch._C._autograd._pop_saved_tensors_default_hooks()


def _set_tracers(value: tuple[Any, Any]) -> None:
    sys.settrace(value[0])
    sys.setprofile(value[1])


def _flushes_denormals() -> bool:
    return bool((torch.full((), 1e-310, dtype=torch.float64) * 1 == 0).item())


SETTINGS: dict[str, Setting] = {
    "the precision of float32 products": (_precisions, _set_precisions),
    **{f"torch.backends.cudnn.{name}": _attribute(_backends.cudnn, name) for name in _CUDNN},
    "reduced precision in fp16 products": _attribute(_cuda.matmul, "allow_fp16_reduced_precision_reduction"),
    "reduced precision in bf16 products": _attribute(_cuda.matmul, "allow_bf16_reduced_precision_reduction"),
    "flash attention": (_cuda.flash_sdp_enabled, _cuda.enable_flash_sdp),
    "memory-efficient attention": (_cuda.mem_efficient_sdp_enabled, _cuda.enable_mem_efficient_sdp),
    "plain attention": (_cuda.math_sdp_enabled, _cuda.enable_math_sdp),
    "cuDNN attention": (_cuda.cudnn_sdp_enabled, _cuda.enable_cudnn_sdp),
    "the number of threads": (torch.get_num_threads, torch.set_num_threads),
    "the default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "the default device": (torch.get_default_device, lambda value: torch.set_default_device(None)),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "anomaly detection": (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    "modes of torch that were entered": (_modes, _leave_modes),
    "torch's profiler": (torch._C._autograd._profiler_enabled, lambda value: torch._C._autograd._disable_profiler()),
    "tracing of Python": (lambda: (sys.gettrace(), sys.getprofile()), _set_tracers),
    "tracing of memory": (tracemalloc.is_tracing, lambda value: tracemalloc.start() if value else tracemalloc.stop()),
    "oneDNN": (lambda: torch.backends.mkldnn.enabled, lambda value: torch.backends.mkldnn.set_flags(value)),
    "NumPy's error handling": (np.geterr, lambda value: np.seterr(**value)),
    "autocast": (
        lambda: [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")],
        lambda value: [torch.set_autocast_enabled(*pair) for pair in zip(("cpu", "cuda"), value, strict=True)],
    ),
    "deterministic algorithms": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "flushing of denormals": (_flushes_denormals, torch.set_flush_denormal),
    "the current stream": (
        lambda: torch.cuda.current_stream() if torch.cuda.is_initialized() else None,
        lambda value: torch.cuda.set_stream(value) if value is not None else None,
    ),
    "the random seed": (torch.initial_seed, torch.manual_seed),
    "garbage collection": (lambda: (gc.isenabled(), *gc.get_threshold()), _set_collection),
    "environment variables": (_variables, _set_variables),
}
if hasattr(signal, "setitimer"):
    _REAL = signal.ITIMER_REAL
    SETTINGS["an alarm"] = (lambda: signal.getitimer(_REAL)[0] > 0, lambda value: signal.setitimer(_REAL, 0))
if hasattr(os, "sched_getaffinity"):
    SETTINGS["the cores it may use"] = (lambda: os.sched_getaffinity(0), lambda value: os.sched_setaffinity(0, value))
