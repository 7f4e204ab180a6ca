"""A call is counted: its kernels and operations report to a meter from here on until it returns."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

from common.traffic.cache import L2
from common.traffic.data import Access, Traffic
from common.traffic.meter import Meter


@contextmanager
def counting(l2: L2 | None = None, heard: list[Access] | None = None) -> Iterator[Meter]:
    """Inside, kernels and operations are counted; `traffic` of what is yielded says what was found.

    Triton's kernels run in its interpreter, wherever their tensors lie. `l2`: a model of a cache, to be fed along.
    `heard`: as of a Meter.
    """
    meter = Meter(l2, heard)
    from common.traffic.operations import Operations  # imports torch

    with ExitStack() as stack:
        if find_spec("triton"):  # optional: not on macOS
            from common.traffic.kernels import counted

            stack.enter_context(counted(meter))
        stack.enter_context(Operations(meter))
        yield meter


def count(function: Callable[..., Any], *args: Any, l2: L2 | None = None, **kwargs: Any) -> Traffic:
    """What one call asks of the memory. Its answer, and what it changes, is as it would be without."""
    with counting(l2) as meter:
        function(*args, **kwargs)
    return meter.traffic


def traced(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[Access]]:
    """What one call answers, and each access of its kernels' programs in the order in which they ran."""
    heard: list[Access] = []
    with counting(heard=heard):
        answer = function(*args, **kwargs)
    return answer, heard
