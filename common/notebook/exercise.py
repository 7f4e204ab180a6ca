"""A reader's own kernel: checked in every access and value, and compiled for a GPU that need not be here."""

import inspect
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import torch

from common.learn.hints import Arrays, accesses_of, apart, outside, wrong
from common.machine.device import has_gpu
from common.pairs.one_line import OneLine
from common.show.formats import digits
from common.traffic import count
from common.traffic.data import SECTOR
from common.xray.capture import TritonLaunch
from common.xray.compilers import compile_for
from common.xray.occupancy import MACHINES
from common.xray.sass import Anatomy, dissect

Shape = tuple[int, ...]


class NoTriton(OneLine):
    """This system has no Triton: in a notebook one line in place of a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def need_triton() -> None:
    """Raises NoTriton."""
    if not find_spec("triton"):
        raise NoTriton(
            "This notebook needs Triton, which exists for Linux only (on Windows: in WSL; else in a container)."
        )


def compiled(kernel: Any, *arguments: Any, arch: str = "sm_90", **options: Any) -> Anatomy:
    """The machine code of a Triton kernel's launch, on any machine. `arguments`: tensors may be on the device meta.

    Raises CompileError, NoTools.
    """
    launch = TritonLaunch(kernel.__name__, kernel, arguments, options, None)
    return dissect(compile_for(launch, MACHINES[arch]), MACHINES[arch])


def check_kernel(run: Callable[..., None], expected: Callable[..., torch.Tensor], shapes: Sequence[Shape]) -> None:
    """Says whether `run(*inputs, out)` writes `expected(*inputs)` into `out`, and how it does not.

    `run` launches one Triton kernel. All its inputs are float32 and of one shape, one of `shapes` after the other; the
    traffic is that of the first. Addresses are looked at before anything is loaded, so a missing mask does no damage.
    Kernels run in Triton's interpreter, and compiled as well where there is a GPU. An error in a kernel is raised.
    """
    for shape in shapes:
        arrays, want = _arrays(run, expected, shape)
        if problem := _wrong_call(run, arrays, want):
            print(f"not yet: inputs of {_written(shape)}: {problem}")
            return
    arrays, _ = _arrays(run, expected, shapes[0])
    found = count(run, *arrays.values())
    least = sum(-(-array.nbytes // SECTOR) for array in arrays.values())
    times = digits(found.sectors / least)
    print(f"right: inputs of {', '.join(map(_written, shapes))}{', also compiled, on this GPU' * has_gpu()}")
    print(f"traffic at {_written(shapes[0])}: {found.sectors:,.0f} sectors, {times} times the least ({least:,})")


def _arrays(
    run: Callable[..., None], expected: Callable[..., torch.Tensor], shape: Shape
) -> tuple[Arrays, torch.Tensor]:
    """Inputs by the names of `run`'s parameters, an output that holds nothing but NaN, and what should be in it."""
    *names, last = inspect.signature(run).parameters
    draw = torch.Generator().manual_seed(0)
    inputs = {name: apart(torch.randn(shape, generator=draw)) for name in names}
    want = expected(*(x.double() for x in inputs.values()))
    return {**inputs, last: apart(torch.full(tuple(want.shape), float("nan")))}, want


def _wrong_call(run: Callable[..., None], arrays: Arrays, want: torch.Tensor) -> str:
    """What is wrong with one call; empty if nothing."""
    accesses = accesses_of(run, arrays, is_real=False)
    if not any(each.kind == "store" for each in accesses):
        return "no program has stored anything"
    if problem := outside(accesses, arrays, knows_all=True):
        return problem
    accesses = accesses_of(run, arrays)
    (name, out) = list(arrays.items())[-1]
    problem = wrong(name, out, want, accesses)
    if problem or not has_gpu():
        return problem
    on_gpu = [array.cuda() for array in arrays.values()]
    on_gpu[-1].fill_(float("nan"))
    run(*on_gpu)
    problem = wrong(name, on_gpu[-1].cpu(), want, [])
    return problem and f"right in the interpreter, but compiled, on this GPU: {problem}"


def _written(shape: Shape) -> str:
    return " x ".join(map(str, shape))
