"""Triton's interpreter, without four of its costs: a kernel with a reduction of its own is minutes faster on a CPU.

It combines the values of such a reduction one after the other, here they are combined in pairs, as a GPU does; it
searches Triton for what to replace at each call of a device function, which the launch has done; it makes a table of
all types for each type that it looks up; and it computes each sum of integers twice, to tell whether it overflows,
which takes half its time: here it wraps around, as on a GPU.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any


def quicken() -> None:
    """Once Triton is loaded, in a process in which it interprets; nothing otherwise."""
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    interprets = interpreter and os.environ.get("TRITON_INTERPRET") == "1"
    if interprets and interpreter.ReduceOps.generic_reduce is not _reduced:
        interpreter.ReduceOps.generic_reduce = _reduced
        interpreter.InterpretedFunction.__call__ = _called
        interpreter._get_np_dtype = partial(_numpy_type, cache(interpreter._get_np_dtype))
        builder = interpreter.interpreter_builder
        builder.options = replace(builder.options, sanitize_overflow=False)


def _numpy_type(look_up: Callable[[Any], Any], of: Any) -> Any:
    """That of a tensor's elements, by Triton's type; pointers, which have no hash, are 64 bits."""
    import numpy as np  # heavy, and Triton's interpreter has it

    return np.dtype(np.uint64) if of.scalar.is_ptr() else look_up(of.scalar)


def _reduced(self: Any, values: tuple[Any, ...]) -> list[Any]:
    """tl.reduce with a function of the kernel's own, which is associative: neighbours are combined, until one is left.

    `self`: its ReduceOps. `values`: tensors of one shape, of sizes that are powers of 2.
    """
    import numpy as np  # heavy, and Triton's interpreter has it

    rank = len(values[0].shape)
    rest, axis = values, self.axis
    if axis is None:
        rest, axis = tuple(self.to_tensor(each.handle.data.flatten(), each.dtype) for each in values), 0
    while (length := rest[0].handle.data.shape[axis]) > 1:
        halves = [
            self.to_tensor(np.take(each.handle.data, range(start, length, 2), axis), each.dtype)
            for start in (0, 1)
            for each in rest
        ]
        combined = self.combine_fn.fn(*halves)
        rest = combined if isinstance(combined, tuple) else (combined,)
    found = [each.handle.data for each in rest]
    if self.axis is None:
        found = [each.reshape((1,) * rank) if self.keep_dims else each.item() for each in found]
    elif not self.keep_dims:
        found = [each.squeeze(axis) for each in found]
    return [self.to_tensor(data, value.dtype) for data, value in zip(found, values, strict=True)]


def _called(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A device function, called by a kernel. What it knows of Triton may be another module than the kernel does."""
    interpreter: Any = sys.modules["triton.runtime.interpreter"]
    if any(interpreter.tl.core.is_builtin(language.load) for language in _languages(self.fn)):
        interpreter._patch_lang(self.fn)
    return self.rewrite()(*args, **kwargs)


@cache
def _languages(function: Any) -> list[Any]:
    language: Any = sys.modules["triton.language"]
    return [value for value in function.__globals__.values() if value is language or value is language.core]
