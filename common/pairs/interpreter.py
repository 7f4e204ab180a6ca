"""A faster Triton interpreter: kernels are checked in half the time on a CPU; one with its own reduction saves minutes.

Triton combines the values of such a reduction one by one; here they are combined in pairs, as on a GPU. Triton computes
each integer sum twice to detect an overflow; here it wraps around, as on a GPU. Triton also searches its modules for
functions to replace, builds tables of types, checks shapes and unwraps constants for every value; here the results are
cached.
"""

import math
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any


def quicken() -> None:
    """Replace the slow parts of Triton's interpreter, if Triton is loaded and interprets in this process."""
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    interprets = interpreter and os.environ.get("TRITON_INTERPRET") == "1"
    if interprets and interpreter.ReduceOps.generic_reduce is not _reduced:
        interpreter.ReduceOps.generic_reduce = _reduced
        interpreter.InterpretedFunction.__call__ = _called
        interpreter._get_np_dtype = partial(_numpy_type, cache(interpreter._get_np_dtype))
        builder = interpreter.interpreter_builder
        builder.options = replace(builder.options, sanitize_overflow=False)
        core: Any = sys.modules["triton.language.core"]
        core.tensor.__init__, core.block_type.__init__ = _init_tensor, _init_block_type
        sys.modules["triton.runtime.jit"].ConstexprFunction.__call__ = _called_on_constants


def _init_tensor(self: Any, handle: Any, type: Any) -> None:
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel, _ = _shape(_numbers(type.shape) if type.is_block() else ())


def _init_block_type(self: Any, element_ty: Any, shape: Any) -> None:
    numbers = _numbers(shape)
    if not numbers:
        raise TypeError("0d block_type is forbidden")
    self.element_ty, self.name = element_ty, f"<{list(numbers)}, {element_ty}>"
    self.shape, self.numel = _shape(numbers)[2], math.prod(numbers)


def _numbers(shape: Any) -> tuple[int, ...]:
    return tuple([size if size.__class__ is int else getattr(size, "value", size) for size in shape])


@cache
def _shape(numbers: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """(A shape of constants, its number of values, a shape of numbers.) Raises what Triton raises for a bad shape."""
    core: Any = sys.modules["triton.language.core"]
    constants = core.tuple([core.constexpr(size) for size in numbers])
    return constants, core.constexpr(core.validate_block_shape(numbers)), core.tuple(list(numbers))


_PLAIN: dict[int, tuple[Any, Any]] = {}  # by identity: (a tuple, the same tuple without constexpr)


def _called_on_constants(self: Any, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
    """Call a constexpr function. Its arguments may be large constant tables, so their unwrapped form is kept."""
    core: Any = sys.modules["triton.language.core"]

    def plain(value: Any) -> Any:
        if value.__class__ is not tuple:
            return core._unwrap_if_constexpr(value)
        if id(value) not in _PLAIN:
            _PLAIN[id(value)] = value, core._unwrap_if_constexpr(value)  # both are kept, so no other tuple gets this id
        return _PLAIN[id(value)][1]

    return self.fn(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})


def _numpy_type(look_up: Callable[[Any], Any], of: Any) -> Any:
    """NumPy's type of a tensor's elements. Pointers, which are not hashable, are 64-bit."""
    import numpy as np  # a slow import; the interpreter needs it anyway

    return np.dtype(np.uint64) if of.scalar.is_ptr() else look_up(of.scalar)


def _reduced(self: Any, values: tuple[Any, ...]) -> list[Any]:
    """tl.reduce with the kernel's own associative function: neighbours are combined until one value is left.

    `self`: a ReduceOps. `values`: tensors of one shape, whose sizes are powers of 2.
    """
    import numpy as np  # a slow import; the interpreter needs it anyway

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
    """Call a device function from a kernel. Its `tl` may be another module object than the kernel's."""
    interpreter: Any = sys.modules["triton.runtime.interpreter"]
    if any(interpreter.tl.core.is_builtin(language.load) for language in _languages(self.fn)):
        interpreter._patch_lang(self.fn)
    return self.rewrite()(*args, **kwargs)


@cache
def _languages(function: Any) -> list[Any]:
    language: Any = sys.modules["triton.language"]
    return [value for value in function.__globals__.values() if value is language or value is language.core]
