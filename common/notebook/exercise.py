"""A reader's own kernel: checked in every access and value, and compiled for a GPU that need not be here."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from common.machine.device import has_gpu
from common.pairs.one_line import OneLine
from common.show.formats import digits
from common.traffic import Access, count
from common.traffic.data import SECTOR
from common.traffic.meter import Meter
from common.xray.capture import TritonLaunch
from common.xray.compilers import compile_for
from common.xray.occupancy import MACHINES
from common.xray.sass import Anatomy, dissect

Shape = tuple[int, ...]
Arrays = Mapping[str, torch.Tensor]
APART = 1 << 14  # elements before and behind each array: what lies beyond an array's end lies in no other one
NEAR = 1e-4  # float32 sums in another order
DOES = {"load": "loads", "store": "stores to", "atomic": "adds to"}


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
    inputs = {name: _apart(shape).copy_(torch.randn(shape, generator=draw)) for name in names}
    want = expected(*(x.double() for x in inputs.values()))
    return {**inputs, last: _apart(tuple(want.shape))}, want


def _apart(shape: Shape) -> torch.Tensor:
    size = torch.Size(shape).numel()
    return torch.full((size + 2 * APART,), float("nan"))[APART : APART + size].view(shape)


def _wrong_call(run: Callable[..., None], arrays: Arrays, want: torch.Tensor) -> str:
    """What is wrong with one call; empty if nothing."""
    accesses = _accesses(run, arrays, is_real=False)
    if not any(each.kind == "store" for each in accesses):
        return "no program has stored anything"
    if problem := next(filter(None, (_beyond(each, arrays) for each in accesses)), ""):
        return problem
    accesses = _accesses(run, arrays)
    (name, out) = list(arrays.items())[-1]
    begin = out.data_ptr()
    problem = _wrong(name, out, want, lambda element: _writers(begin + element * out.element_size(), accesses))
    if problem or not has_gpu():
        return problem
    on_gpu = [array.cuda() for array in arrays.values()]
    on_gpu[-1].fill_(float("nan"))
    run(*on_gpu)
    problem = _wrong(name, on_gpu[-1].cpu(), want, lambda element: [0])
    return problem and f"right in the interpreter, but compiled, on this GPU: {problem}"


def _accesses(run: Callable[..., None], arrays: Arrays, is_real: bool = True) -> list[Access]:
    """Those of all programs. Not `is_real`: nothing is loaded or stored."""
    from common.traffic.kernels import counted  # imports triton

    heard: list[Access] = []
    with counted(Meter(heard=heard), is_real=is_real):
        run(*arrays.values())
    return heard


def _beyond(access: Access, arrays: Arrays) -> str:
    """The first lane that looks where its array is not, and is not masked."""
    for address in access.addresses[access.mask].reshape(-1).tolist():
        if all(_distance(address, array) for array in arrays.values()):
            name, array = min(arrays.items(), key=lambda item: _distance(address, item[1]))
            offset = (address - array.data_ptr()) // array.element_size()
            does = f"program {access.program} {DOES[access.kind]} {name} at offset {offset}"
            return f"{does}, but {name} has {array.numel()} elements: what has to be masked?"
    return ""


def _distance(address: int, array: torch.Tensor) -> int:
    """Bytes from an array's nearest end; 0 inside."""
    begin = array.data_ptr()
    return max(begin - address, address - (begin + array.nbytes - 1), 0)


def _wrong(name: str, out: torch.Tensor, want: torch.Tensor, writers_of: Callable[[int], list[int]]) -> str:
    """The first wrong element, and what it looks like; empty if there is none. `writers_of`: an element's programs."""
    wrong = ~torch.isclose(out.double(), want, rtol=NEAR, atol=NEAR).reshape(-1)
    if not wrong.any():
        return ""
    first = int(wrong.nonzero()[0])
    got, right = float(out.reshape(-1)[first]), float(want.reshape(-1)[first])
    said = f"{_element(name, first, want)} should be {right:.5g}"
    writers = writers_of(first)
    if not writers:
        return f"{said}, but is never written. {_unwritten(name, out, want)}"
    said += f", got {got:.5g} ({int(wrong.sum()):,} of {want.numel():,} elements are wrong)"
    if len(writers) > 1:
        return f"{said}. Programs {writers[0]} and {writers[1]} both write it: do its offsets depend on the program?"
    same = torch.isclose(want, torch.tensor(got, dtype=want.dtype), rtol=NEAR, atol=0).reshape(-1).nonzero()
    return f"{said}. That belongs into {_element(name, int(same[0]), want)}" if len(same) else said


def _unwritten(name: str, out: torch.Tensor, want: torch.Tensor) -> str:
    """How many elements are as they were, and whether these are the last ones."""
    empty = out.isnan().reshape(-1).nonzero().reshape(-1)
    if len(empty) == want.numel() - int(empty[0]):
        return "Nor is anything behind it: does the grid have enough programs?"
    return f"{len(empty):,} of {want.numel():,} elements are not: which program should write this one?"


def _writers(address: int, accesses: Sequence[Access]) -> list[int]:
    """The programs that store to this address."""
    stores = [each for each in accesses if each.kind != "load"]
    return sorted({each.program for each in stores if bool((each.addresses[each.mask] == address).any())})


def _element(name: str, place: int, array: torch.Tensor) -> str:
    index = np.unravel_index(place, tuple(array.shape))
    return f"{name}[{', '.join(str(int(each)) for each in index)}]"


def _written(shape: Shape) -> str:
    return " x ".join(map(str, shape))
