"""Hooks in Triton's interpreter: a kernel reports each load, store, atomic operation and product.

Kernels made for a GPU are interpreted, too: nothing has to be set before Triton is imported.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, partialmethod
from typing import Any
from unittest.mock import patch

import numpy as np
import triton.experimental.gluon.language  # noqa: F401  imported inside, it would keep the interpreter's functions
from torch.utils._python_dispatch import _disable_current_modes
from triton import knobs
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from common.checks.interpreter_watch import Undefined, or_undefined
from common.pairs.interpreter import patch_tensor
from common.pairs.user_error import UserError
from common.traffic.data import Kernel
from common.traffic.meter import Meter

Builder, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
vars(interpreter).pop("__file__", None)  # Triton gives it to a kernel's module: a child would run it as the notebook
TF32 = {"tf32": 1, "tf32x3": 3}  # one float32 product becomes this many tensor-core products
Run = Callable[..., tuple[Kernel, float]]  # (kernel, arguments, `grid`, options) -> arguments of Meter.add


class UnseenLaunch(UserError):
    """A kernel is launched in a way that no hook sees."""


class _NoBinary:  # stands for the compiled kernel that a launch returns
    def __getattr__(self, name: str) -> Any:
        raise UnseenLaunch("launches a compiled kernel itself, which no hook sees")


@contextmanager
def interpreter_hooks(
    meter: Meter, run: Run | None = None, is_real: bool = True, undefined: Undefined = None
) -> Iterator[None]:
    """Inside, launches report to the meter. `run`: runs a kernel; by default all its programs, one by one.

    With `is_real` false, nothing is loaded, stored or multiplied: only addresses are examined, and every load returns
    0. `undefined()`: what a lane gets that a load's mask switches off without `other`, if it is of floats; of integers,
    the largest. By default, or for None, 0; on a GPU any value.
    """
    original_run = interpreter.InterpretedFunction.run
    running: list[str] = []  # kernels: at most one

    def launch(self: Any, *args: Any, grid: Any, warmup: bool = False, **options: Any) -> Any:
        if warmup:
            return _NoBinary()
        running.append(self.__name__)
        try:
            with _disable_current_modes():  # the interpreter's own copies are not the program's
                if run:
                    meter.add(*run(self, *args, grid=grid, **options))
                    return _NoBinary()
                meter.begin(self.__name__)
                original_run(self, *args, grid=grid, warmup=False, **options)
                meter.end()
        finally:
            running.pop()
        return _NoBinary()

    def launch_interpreted(self: Any, *args: Any, **options: Any) -> Any:
        return launch(interpreter.InterpretedFunction(self.fn), *args, **options)

    def call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not running:  # not by a kernel
            raise UnseenLaunch(f"{self.__name__} is called without a grid: a launch is {self.__name__}[grid](...)")
        return interpreter.InterpretedFunction(self.fn)(*args, **kwargs)

    def run_first_config(self: Any, *args: Any, **options: Any) -> Any:
        return self.fn.run(*args, **options, **self.configs[0].all_kwargs())

    with ExitStack() as stack:
        stack.enter_context(knobs.runtime.scope())  # setting it also sets the variable TRITON_INTERPRET
        knobs.runtime.interpret = True
        stack.enter_context(patch.multiple(JITFunction, run=launch_interpreted, __call__=call_device_function))
        stack.enter_context(patch.object(interpreter.InterpretedFunction, "run", launch))
        stack.enter_context(patch.object(Autotuner, "run", run_first_config))
        stack.enter_context(patch.multiple(Builder, **_hooks(meter, is_real, undefined)))
        stack.enter_context(_restore_language())
        original_patch = interpreter._patch_lang_tensor
        stack.enter_context(patch.object(interpreter, "_patch_lang_tensor", partial(patch_tensor, original_patch)))
        yield


@contextmanager
def _restore_language() -> Iterator[None]:
    """Restore Triton's language: the interpreter leaves it replaced after a function call; nothing compiles then."""
    scope: Any = interpreter._LangPatchScope
    set_attr, replaced = scope.set_attr, dict[tuple[int, str], tuple[Any, Any]]()

    def remember_and_set(self: Any, owner: Any, name: str, value: Any) -> None:
        replaced.setdefault((id(owner), name), (owner, vars(owner).get(name, remember_and_set)))
        set_attr(self, owner, name, value)

    try:
        with patch.object(scope, "set_attr", remember_and_set):
            yield
    finally:
        for (_, name), (owner, value) in replaced.items():
            if value is not remember_and_set:
                setattr(owner, name, value)
            elif name in vars(owner):  # the attribute did not exist
                delattr(owner, name)


def _hooks(meter: Meter, is_real: bool, undefined: Undefined) -> dict[str, Any]:
    """Replacements of the interpreter builder's methods that access memory or multiply; each reports first."""
    originals = {name: getattr(Builder, name) for name in dir(Builder) if name.startswith(("create_", "set_"))}
    through_tma = [False]

    def access(pointers: Any, mask: Any, kind: str) -> Any:
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        there = True if mask is None else np.asarray(mask.data) != 0  # a descriptor's mask is a plain array
        there = np.broadcast_to(there, pointers.data.shape)
        meter.access(pointers.data, there, size, kind, through_tma[0])
        return there

    def set_grid_idx(self: Any, *index: int) -> None:
        meter.program()
        originals["set_grid_idx"](self, *index)

    def load(self: Any, ptrs: Any, mask: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        there = access(ptrs, mask, "load")
        other = or_undefined(other, there, ptrs.get_element_ty(), undefined)
        if is_real:
            return originals["create_masked_load"](self, ptrs, mask, other, *args, **kwargs)
        return _zeros(ptrs.data.shape, ptrs.get_element_ty())

    def store(self: Any, ptrs: Any, value: Any, mask: Any, *args: Any, **kwargs: Any) -> Any:
        access(ptrs, mask, "store")
        return originals["create_masked_store"](self, ptrs, value, mask, *args, **kwargs) if is_real else None

    def add(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, *args: Any) -> Any:
        access(ptr, mask, "atomic")
        original_add = originals["create_atomic_rmw"]
        return (
            original_add(self, operation, ptr, val, mask, *args)
            if is_real
            else _zeros(val.data.shape, val.dtype.scalar)
        )

    def swap(self: Any, ptr: Any, cmp: Any, *args: Any) -> Any:
        access(ptr, None, "atomic")
        return originals["create_atomic_cas"](self, ptr, cmp, *args) if is_real else cmp  # a lock is free

    def dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, *args: Any) -> Any:
        precision, times = _precision(a.dtype.scalar, input_precision)
        meter.flops(precision, 2.0 * times * a.data.size * b.data.shape[-1])
        return originals["create_dot"](self, a, b, d, input_precision, *args) if is_real else d

    def descriptor(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        through_tma[0] = True
        try:
            return originals[name](self, *args, **kwargs)
        finally:
            through_tma[0] = False

    memory = {"masked_load": load, "masked_store": store, "atomic_rmw": add, "atomic_cas": swap, "dot": dot}
    names = [f"create_descriptor_{what}" for what in ("load", "store", "gather", "scatter")]
    hooks = {f"create_{what}": hook for what, hook in memory.items()} | {"set_grid_idx": set_grid_idx}
    return hooks | {name: partialmethod(descriptor, name) for name in names}


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    return Handle(np.zeros(shape, interpreter._get_np_dtype(dtype)), dtype)


def _precision(dtype: Any, input_precision: Any) -> tuple[str, int]:
    """(The precision in which operands of this type are multiplied, how often.)"""
    name = str(dtype)
    if name == "fp32":
        requested = str(input_precision).rpartition(".")[2].lower()
        return ("tf32", TF32[requested]) if requested in TF32 else ("fp32", 1)
    return ("fp8" if name.startswith("fp8") else name), 1
