"""Operators of Triton's interpreter that remember what Triton does with operands of these types.

For each `a + b` Triton looks anew for the type of the result, converts both operands, and spreads both to one shape.
Here it does so once for each pair of types, with one value of each, and its last step is recorded. From then on this
step is taken directly, and NumPy spreads the values as it computes.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from typing import Any
from unittest.mock import patch

import numpy as np

BINARY = (  # but for shifts to the right, which change their operands
    "add", "sub", "mul", "truediv", "floordiv", "mod", "minimum", "maximum", "and_", "or_", "xor_", "shl",
    "less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal",
)  # fmt: skip
STEPS = "binary_op", "create_idiv", "create_addptr"  # of the builder, with two operands
# Types that NumPy has, and converts as Triton does (a bfloat16 is 16 bits to it)
KINDS = {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
KINDS |= {"int1": "?", "fp16": "f2", "fp32": "f4", "fp64": "f8"}
NUMBERS = {bool, int, float}
MOST_PLANS = 10_000  # of an operator: each number beside a tensor has one
Triton = Any  # its modules, and instances of its classes


def learn_operators(interpreter: Triton, semantic: Triton) -> None:
    """Replace the binary operations and the casts of Triton's class of semantics."""
    for name in (*BINARY, "cast"):
        _USUAL[name] = getattr(semantic, name)
        setattr(semantic, name, (_cast if name == "cast" else _binary)(interpreter, _USUAL[name]))


def _binary(interpreter: Triton, usual: Callable[..., Any]) -> Callable[..., Any]:
    tensor, handle_of = sys.modules["triton.language.core"].tensor, interpreter.TensorHandle
    plans: dict[Any, Any] = {}

    def operate(self: Triton, left: Any, right: Any, *rest: Any, **named: Any) -> Any:
        is_left, is_right = left.__class__ is tensor, right.__class__ is tensor
        if named or not (is_left or left.__class__ in NUMBERS) or not (is_right or right.__class__ in NUMBERS):
            return usual(self, left, right, *rest, **named)
        key = (
            left.dtype.name if is_left else (left.__class__, left),
            right.dtype.name if is_right else (right.__class__, right),
            rest,
        )
        if key not in plans:
            if len(plans) >= MOST_PLANS:
                plans.clear()
            plans[key] = _plan(interpreter, self, usual, left, right, rest)
        if (plan := plans[key]) is None:
            return usual(self, left, right, *rest)
        convert_left, convert_right, step, result_type, handle_type, size = plan
        try:
            data = step(convert_left(left), convert_right(right))
        except ValueError:  # they have no shape in common: Triton says so
            return usual(self, left, right, *rest)
        if data.itemsize > size:
            data = data.astype(interpreter._get_np_dtype(handle_type))
        if (is_left and left.type is not left.dtype) or (is_right and right.type is not right.dtype):
            result_type = block_type(result_type, data.shape)
        return tensor(handle_of(data, handle_type), result_type)

    return operate


def _plan(interpreter: Triton, semantic: Triton, usual: Any, left: Any, right: Any, rest: tuple[Any, ...]) -> Any:
    """How Triton computes with operands of these types; None if it refuses them, or takes other steps.

    Two functions: from each operand to its converted values. A function of both. The types of its result and of the
    result's handle, and the most bytes of one of its values.
    """
    samples = [_sample(interpreter, operand) for operand in (left, right)]
    is_swapped = hasattr(right, "dtype") and right.dtype.is_ptr()  # Triton puts the pointer first
    if is_swapped or any(sample is None for sample in samples):
        return None
    steps, result = _recorded(semantic, STEPS, lambda: usual(semantic, *samples, *rest))
    if len(steps) != 1 or result.handle is not steps[0][-1]:
        return None
    (step, (a, b, *function), handle), handle_of = steps[0], interpreter.TensorHandle
    a_type, b_type = a.dtype, b.dtype
    compute = function[0] if function else lambda x, y: step(handle_of(x, a_type), handle_of(y, b_type)).data
    to_a, to_b = (_conversion(sample, converted.data) for sample, converted in zip(samples, (a, b), strict=True))
    return to_a, to_b, compute, result.dtype, handle.dtype, interpreter._get_np_dtype(handle.dtype).itemsize


def _sample(interpreter: Triton, operand: Any) -> Any:
    """One value of a tensor's type, None if NumPy does not have that type; a number is itself a sample."""
    if operand.__class__ in NUMBERS:
        return operand
    kind = "u8" if operand.dtype.is_ptr() else KINDS.get(operand.dtype.name)
    return kind and operand.__class__(interpreter.TensorHandle(np.ones(1, kind), operand.dtype), operand.dtype)


def _recorded(semantic: Triton, names: tuple[str, ...], action: Callable[[], Any]) -> tuple[list[Any], Any]:
    """The calls of these methods of its builder, each with its arguments and result, and the result of the action.

    Inside, all operations are Triton's own: a remembered one takes its step unseen. No calls if Triton refuses.
    """
    calls, builder = list[Any](), semantic.builder

    def recorder(method: Callable[..., Any]) -> Callable[..., Any]:
        def record(*args: Any) -> Any:
            calls.append((method, args, method(*args)))
            return calls[-1][-1]

        return record

    with ExitStack() as stack:
        for name, usual in _USUAL.items():
            stack.enter_context(patch.object(semantic, name, partial(usual, semantic)))
        for name in names:
            stack.enter_context(patch.object(builder, name, recorder(getattr(builder, name))))
        try:
            return calls, action()
        except Exception:  # noqa: BLE001 (the usual way raises it again, where it is seen)
            return [], None


def _conversion(sample: Any, converted: Any) -> Callable[[Any], Any]:
    if sample.__class__ in NUMBERS:
        return lambda number: converted
    if sample.handle.data.dtype == converted.dtype:
        return attrgetter("handle.data")
    return lambda operand: operand.handle.data.astype(converted.dtype)


def _cast(interpreter: Triton, usual: Callable[..., Any]) -> Callable[..., Any]:
    plans: dict[Any, Any] = {}

    def cast(self: Triton, input: Any, dst_ty: Any, *rounding: Any, **named: Any) -> Any:
        source, target = input.dtype, dst_ty.scalar
        key = source.name, target.name, rounding
        if named or source.name not in KINDS or target.name not in KINDS:
            return usual(self, input, dst_ty, *rounding, **named)
        if source.name == target.name:
            return input
        if key not in plans:
            sample = _sample(interpreter, input)
            steps, result = _recorded(self, ("cast_impl",), lambda: usual(self, sample, target, *rounding))
            is_chain = steps and result.handle is steps[-1][-1]
            plans[key] = [handle.data.dtype for _, _, handle in steps] if is_chain else None
        if plans[key] is None:
            return usual(self, input, dst_ty, *rounding)
        data = input.handle.data
        for kind in plans[key]:
            data = data.astype(kind)
        type = target if input.type is source else block_type(target, data.shape)
        return self.tensor(interpreter.TensorHandle(data, target), type)

    return cast


def block_type(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Triton's type of a block, made once: a pointer's type is not hashable, its name is."""
    key = dtype.name, shape
    if key not in _BLOCK_TYPES:
        _BLOCK_TYPES[key] = sys.modules["triton.language.core"].block_type(dtype, shape)
    return _BLOCK_TYPES[key]


_USUAL: dict[str, Callable[..., Any]] = {}  # Triton's own operations
_BLOCK_TYPES: dict[tuple[str, tuple[int, ...]], Any] = {}
