"""Count one call: its kernels and operations report to a meter until it returns."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

from common.traffic.data import Access, Traffic
from common.traffic.l2_model import L2
from common.traffic.meter import Meter


@contextmanager
def counting(l2: L2 | None = None, accesses: list[Access] | None = None) -> Iterator[Meter]:
    """Inside, kernels and operations are counted. The yielded meter's `traffic` is the result.

    Triton kernels run in the interpreter, wherever their tensors lie. `l2`: a model that also gets the accesses.
    `accesses`: see Meter.
    """
    meter = Meter(l2, accesses)
    from common.traffic.torch_hooks import Operations  # imports torch

    with ExitStack() as stack:
        if find_spec("triton"):  # optional: not in macOS
            from common.traffic.triton_hooks import interpreter_hooks

            stack.enter_context(interpreter_hooks(meter))
        stack.enter_context(Operations(meter))
        yield meter


def count(function: Callable[..., Any], *args: Any, l2: L2 | None = None, **kwargs: Any) -> Traffic:
    """The memory traffic of one call. Its answer and its side effects are the usual ones."""
    with counting(l2) as meter:
        function(*args, **kwargs)
    return meter.traffic


def traced(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[Access]]:
    """(One call's answer, every access of its kernels' programs in the order of execution.)"""
    accesses: list[Access] = []
    with counting(accesses=accesses):
        answer = function(*args, **kwargs)
    return answer, accesses
