"""Launches without Triton's time on the host. Chapters 3 and 4 have one text: a chapter can be copied alone."""

from functools import cache

import torch
import triton
from triton.compiler import CompiledKernel

cdiv, next_power_of_2 = cache(triton.cdiv), cache(triton.next_power_of_2)  # Triton's cost the host time in each call
_kept = {}  # what Triton compiled for -> (the compiled kernel, the constants that were given by name)


def kind(argument):
    """What Triton compiles for: a tensor's type and alignment. Of a number it looks at 1 and multiples of 16."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.device, argument.data_ptr() % 16
    return argument


def launch(kernel, grid, *arguments, key=None, **options):
    """kernel[grid](*arguments, **options), whose compiled kernel is kept.

    In each launch Triton looks in Python at each argument. Here it does so in the first launch of its kind. What was
    compiled is kept by the kinds of the tensors, and by all other arguments as they are. 1, 1.0 and True are one key:
    an argument has one type in all launches of a kernel. The grid is a tuple.
    key: what decides all of this, where the caller knows it by less, or has arguments that are no keys.
    """
    key = kernel, tuple(map(kind, arguments)) if key is None else key, tuple(options.items())
    if key in _kept:
        compiled, constants = _kept[key]
        compiled[(*grid, 1, 1)[:3]](*arguments, *constants)
    elif isinstance(compiled := kernel[grid](*arguments, **options), CompiledKernel):  # not in Triton's interpreter
        rest = kernel.params[len(arguments) :]  # a compiled kernel is given all of them, in their order
        _kept[key] = compiled, [options.get(parameter.name, parameter.default) for parameter in rest]
