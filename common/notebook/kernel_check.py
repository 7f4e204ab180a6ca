"""A reader's own kernel: checked in every access and value, and compiled for a GPU that need not be here."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import torch

from common.learn.access_trace import AccessTrace, Arrays, out_of_bounds, trace_accesses, uses_undefined, with_margins
from common.learn.errors import explain_error, not_compiled
from common.learn.first_mismatch import mismatch_text
from common.machine.device import has_gpu
from common.pairs.user_error import UserError
from common.show.formats import digits
from common.traffic import count
from common.traffic.data import SECTOR
from common.xray.capture import TritonLaunch
from common.xray.compilers import CompileError, compile_for
from common.xray.occupancy import MACHINES
from common.xray.sass import Anatomy, anatomy

Shape = tuple[int, ...]
Run = Callable[..., None]  # run(*inputs, out)
Expected = Callable[..., torch.Tensor]  # expected(*inputs)
FILLS = tuple(f"torch.{name}" for name in ("zero", "fill_", "full", "ones"))  # what a kernel may add to
MUCH = 1.5  # times the least traffic


class NoTriton(UserError):
    """This system has no Triton."""


def need_triton() -> None:
    """Raises NoTriton."""
    if not find_spec("triton"):
        where = "exists for Linux only (on Windows: in WSL; else in a container)"
        raise NoTriton(f"This notebook needs Triton, which {where}.")


def compiled(kernel: Any, *arguments: Any, arch: str = "sm_90", **options: Any) -> Anatomy:
    """The machine code of a Triton kernel's launch, on any machine. `arguments`: tensors may be on the device meta.

    Raises CompileError, NoTools.
    """
    launch = TritonLaunch(kernel.__name__, kernel, arguments, options, None)
    return anatomy(launch, MACHINES[arch])


def check_kernel(run: Run, expected: Expected, shapes: Sequence[Shape], block: int | None = None) -> None:
    """Says whether `run(*inputs, out)` writes `expected(*inputs)` into `out`, and how it does not, in one line.

    `run` launches one Triton kernel. All its inputs are float32 and of one shape, one of `shapes` after the other; the
    traffic is that of the first. `block`: the most lanes that a load may have. Addresses are looked at before anything
    is loaded, so a missing mask does no damage. Kernels run in Triton's interpreter, with several values in the lanes
    that are undefined on a GPU; they are compiled for an H100; and they run on this machine's GPU if it has one.
    """
    try:
        problem = next(filter(None, _problems(run, expected, shapes, block)), "")
    except Exception as error:
        if not (problem := explain_error(error)):
            raise
    print(f"not yet: {problem}" if problem else _praise(run, expected, shapes))


def _problems(run: Run, expected: Expected, shapes: Sequence[Shape], block: int | None) -> Iterator[str]:
    """What is wrong, in the order in which it is looked for; empty where nothing is."""
    for shape in shapes:
        problem = _wrong_call(run, expected, shape, block)
        yield problem and f"inputs of {_shape_text(shape)}: {problem}"
    problem = _not_compiled(run, _arrays(run, expected, shapes[0])[0])
    yield problem and f"right in the interpreter, but the compiler refuses it: {problem}"
    for shape in shapes if has_gpu() else ():
        problem = _wrong_on_gpu(run, expected, shape)
        yield problem and f"right in the interpreter, but on this GPU, inputs of {_shape_text(shape)}: {problem}"


def _praise(run: Run, expected: Expected, shapes: Sequence[Shape]) -> str:
    """What is right, and what it costs."""
    arrays, _ = _arrays(run, expected, shapes[0])
    traffic = count(run, *arrays.values())
    least = sum(-(-array.nbytes // SECTOR) for array in arrays.values())
    at = f"traffic at {_shape_text(shapes[0])}: {traffic.sectors:,.0f} sectors by {traffic.programs:,.0f} programs"
    times = f"{digits(traffic.sectors / least)} times the least ({least:,})"
    asks = ". Which sectors does it ask for more than once?" * (traffic.sectors > MUCH * least)
    busy = {access.program for access in trace_accesses(run, arrays, is_real=False).accesses if access.mask.any()}
    idle = traffic.programs - len(busy)
    asks += f". {idle:,.0f} programs have masked lanes only: is the grid too large?" * (idle > 0)
    where = "also compiled for an H100" + ", and on this GPU" * has_gpu()
    return f"right: inputs of {', '.join(map(_shape_text, shapes))}, {where}\n{at}, {times}{asks}"


def _arrays(run: Run, expected: Expected, shape: Shape) -> tuple[Arrays, torch.Tensor]:
    """Inputs by the names of `run`'s parameters, an output that holds nothing but NaN, and what should be in it."""
    *names, last = inspect.signature(run).parameters
    draw = torch.Generator().manual_seed(0)
    inputs = {name: with_margins(torch.randn(shape, generator=draw)) for name in names}
    want = expected(*(x.double() for x in inputs.values()))
    return {**inputs, last: with_margins(torch.full(tuple(want.shape), float("nan")))}, want


def _wrong_call(run: Run, expected: Expected, shape: Shape, block: int | None) -> str:
    """What is wrong with one call; empty if nothing."""
    arrays, want = _arrays(run, expected, shape)
    if problem := _wrong_accesses(trace_accesses(run, arrays, is_real=False), arrays, block):
        return problem
    (name, out) = list(arrays.items())[-1]
    trace = trace_accesses(run, arrays)
    if problem := mismatch_text(name, out, want, trace.accesses):
        return problem

    def is_wrong(undefined: float) -> bool:
        arrays, want = _arrays(run, expected, shape)
        trace_accesses(run, arrays, undefined=undefined)
        return bool(mismatch_text(name, arrays[name], want, []))

    return uses_undefined(is_wrong, trace)


def _wrong_accesses(trace: AccessTrace, arrays: Arrays, block: int | None) -> str:
    stores = [access for access in trace.accesses if access.kind != "load" and access.mask.any()]
    if not stores:
        return "no program has stored anything: the result must come from a kernel"
    if others := [name for name in trace.operations if not name.startswith(FILLS)]:
        return f"{others[0]} did part of the work: the result must come from a kernel"
    if problem := out_of_bounds(trace.accesses, arrays):
        return problem
    *inputs, (out, _) = arrays.items()
    for name, array in inputs:
        begin, end = array.data_ptr(), array.data_ptr() + array.nbytes
        for store in stores:
            if ((store.addresses >= begin) & (store.addresses < end) & store.mask).any():
                return f"program {store.program} stores to {name}, an input: are {name} and {out} swapped?"
    widest = max(access.mask.size for access in trace.accesses)
    if block and widest > block:
        return f"a load or store has {widest:,} lanes: the block has to keep its {block}"
    return ""


def _not_compiled(run: Run, arrays: Arrays) -> str:
    """The compiler's error for an H100; empty if there is none."""
    from triton.runtime.jit import JITFunction  # optional: not in macOS

    launches: list[TritonLaunch] = []

    def keep(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> None:
        launches.append(TritonLaunch(self.__name__, self, arguments, options, grid))

    with patch.object(JITFunction, "run", keep):
        run(*arrays.values())
    for launch in launches:
        try:
            compile_for(launch, MACHINES["sm_90"])
        except CompileError as error:
            return not_compiled(str(error), launch.kernel)
    return ""


def _wrong_on_gpu(run: Run, expected: Expected, shape: Shape) -> str:
    arrays, want = _arrays(run, expected, shape)
    on_gpu = {name: array.cuda() for name, array in arrays.items()}
    run(*on_gpu.values())
    name, out = list(on_gpu.items())[-1]
    return mismatch_text(name, out.cpu(), want, [])


def _shape_text(shape: Shape) -> str:
    return " x ".join(map(str, shape))
