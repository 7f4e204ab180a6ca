"""A faster Triton interpreter: kernels are checked in half the time on a CPU; one with its own reduction saves minutes.

Triton combines the values of such a reduction one by one; here they are combined in pairs, as on a GPU. Triton computes
each integer sum twice to detect an overflow; here it wraps around, as on a GPU. Triton also searches its modules for
functions to replace, builds tables of types, checks shapes and unwraps constants for every value; here the results are
cached, and operators remember what Triton does with their types (learned_operators.py).
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property, partial, partialmethod
from inspect import getmembers
from typing import Any

INTERPRETED = {"TRITON_INTERPRET": "1"}  # the environment of a process in which Triton interprets kernels


def environment_on(device: str) -> dict[str, str]:
    """The environment of a process that works on this device, as those that judge versions there have it.

    So all are forked from one server (common.isolation.forkserver), which takes seconds to start.
    """
    return INTERPRETED if device.startswith("cpu") else {}


def speed_up_interpreter() -> None:
    """Replace the slow parts of Triton's interpreter, if Triton is loaded and interprets in this process."""
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    interprets = interpreter and os.environ.get("TRITON_INTERPRET") == "1"
    if interprets and interpreter.ReduceOps.generic_reduce is not _reduce:
        from common.pairs.learned_operators import learn_operators  # NumPy and mock are slow imports

        interpreter.ReduceOps.generic_reduce = _reduce
        interpreter.InterpretedFunction.__call__ = _call_device_function
        interpreter._patch_lang_tensor = partial(patch_tensor, interpreter._patch_lang_tensor)
        interpreter.InterpreterBuilder.create_expand_dims = partialmethod(_expand_dims, interpreter.TensorHandle)
        interpreter._patch_builtin = partial(_patch_builtin, interpreter)
        interpreter._get_np_dtype = partial(_numpy_type, cache(interpreter._get_np_dtype))
        builder = interpreter.interpreter_builder
        builder.options = replace(builder.options, sanitize_overflow=False)
        core: Any = sys.modules["triton.language.core"]
        core._unwrap_if_constexpr = partial(
            _unwrap, core._unwrap_if_constexpr, {core.tensor, int, float, bool, str, type(None)}
        )
        core.tensor.__init__, core.block_type.__init__ = _init_tensor, _init_block_type
        core.block_type.name = property(lambda self: f"<{list(self.numbers)}, {self.element_ty}>")
        core.block_type.numbers = cached_property(lambda self: _numbers(self.shape))  # of those that exist already
        core.block_type.numbers.__set_name__(core.block_type, "numbers")
        interpreter.TensorHandle.__post_init__ = lambda self: None
        semantic: Any = sys.modules["triton.language.semantic"].TritonSemantic
        semantic.broadcast_impl_value = _unless_of_one_shape(semantic.broadcast_impl_value)
        learn_operators(interpreter, semantic)
        sys.modules["triton.runtime.jit"].ConstexprFunction.__call__ = _call_constexpr


def patch_tensor(original: Callable[..., None], tensor: Any, scope: Any) -> None:
    """Triton 3.6 converts an array of one value to a number (the bound of a loop), which NumPy now refuses."""
    original(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


def _init_tensor(self: Any, handle: Any, type: Any) -> None:
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel, _, _ = _shape(getattr(type, "numbers", ()))


def _init_block_type(self: Any, element_ty: Any, shape: Any) -> None:
    self.element_ty, self.numbers = element_ty, _numbers(shape)
    if not self.numbers:
        raise TypeError("0d block_type is forbidden")
    _, _, self.shape, self.numel = _shape(self.numbers)


def _unwrap(unwrap: Callable[[Any], Any], plain: set[type], value: Any) -> Any:
    return value if value.__class__ in plain else unwrap(value)


def _expand_dims(self: Any, handle_of: Any, arg: Any, axis: int) -> Any:
    shape = [*arg.data.shape]
    shape.insert(axis, 1)
    return handle_of(arg.data.reshape(shape), arg.dtype.scalar)


def _numbers(shape: Any) -> tuple[int, ...]:
    return tuple([size if size.__class__ is int else getattr(size, "value", size) for size in shape])


@cache
def _shape(numbers: tuple[int, ...]) -> tuple[Any, Any, Any, int]:
    """A shape and its number of values, as constants and as numbers. Raises what Triton raises for a bad shape."""
    core: Any = sys.modules["triton.language.core"]
    constants = core.tuple([core.constexpr(size) for size in numbers])
    count = core.validate_block_shape(numbers)
    return constants, core.constexpr(count), core.tuple(list(numbers)), count


def _unless_of_one_shape(broadcast: Callable[..., Any]) -> Callable[..., Any]:
    """Two values of one shape stay as they are: Triton would look at each axis."""

    def method(self: Any, lhs: Any, rhs: Any) -> Any:
        is_one = getattr(lhs.type, "numbers", ()) == getattr(rhs.type, "numbers", ())
        return (lhs, rhs) if is_one else broadcast(self, lhs, rhs)

    return method


_PLAIN: dict[int, tuple[Any, Any]] = {}  # by identity: (a tuple, the same tuple without constexpr)


def _call_constexpr(self: Any, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
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


def _reduce(self: Any, values: tuple[Any, ...]) -> list[Any]:
    """tl.reduce with the kernel's own associative function: neighbours are combined until one value is left.

    `self`: a ReduceOps. `values`: tensors of one shape, whose sizes are powers of 2.
    """
    rank = len(values[0].shape)
    rest, axis = values, self.axis
    if axis is None:
        rest, axis = tuple(self.to_tensor(block.handle.data.flatten(), block.dtype) for block in values), 0
    before = (slice(None),) * (axis % rank)
    while rest[0].handle.data.shape[axis] > 1:
        halves = [
            self.to_tensor(block.handle.data[(*before, slice(start, None, 2))], block.dtype)
            for start in (0, 1)
            for block in rest
        ]
        combined = self.combine_fn.fn(*halves)
        rest = combined if isinstance(combined, tuple) else (combined,)
    arrays = [block.handle.data for block in rest]
    if self.axis is None:
        arrays = [array.reshape((1,) * rank) if self.keep_dims else array.item() for array in arrays]
    elif not self.keep_dims:
        arrays = [array.squeeze(axis) for array in arrays]
    return [self.to_tensor(data, value.dtype) for data, value in zip(arrays, values, strict=True)]


def _call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a device function from a kernel. Its `tl` may be another module object than the kernel's."""
    interpreter: Any = sys.modules["triton.runtime.interpreter"]
    if any(interpreter.tl.core.is_builtin(language.load) for language in _languages(self.fn)):
        interpreter._patch_lang(self.fn)
    return self.rewrite()(*args, **kwargs)


def _patch_builtin(interpreter: Any, package: Any, builder: Any, scope: Any) -> None:
    """Give Triton's builtin functions of a module or a class the interpreter's semantics, unless they have it."""
    for name, builtin, replacement in _builtins(interpreter, package):
        if getattr(package, name) is builtin:
            scope.set_attr(package, name, replacement)


@cache
def _builtins(interpreter: Any, package: Any) -> list[tuple[str, Any, Any]]:
    """Name, builtin and its replacement: what Triton's wrapper, which only looks for the semantics, calls."""
    core: Any = sys.modules["triton.language.core"]

    def replacement(builtin: Any) -> Any:
        semantics = {"_semantic": interpreter.interpreter_semantic}
        inner = getattr(builtin, "__wrapped__", builtin)
        if not isinstance(package, type):
            return partial(inner, **semantics)
        return lambda *args, **kwargs: inner(*args, **{**kwargs, **semantics})  # a method has to be a function

    return [(name, member, replacement(member)) for name, member in getmembers(package) if core.is_builtin(member)]


@cache
def _languages(function: Any) -> list[Any]:
    language: Any = sys.modules["triton.language"]
    return [value for value in function.__globals__.values() if value is language or value is language.core]
