"""What a wrong answer of a kernel looks like, from every load and store that its programs make."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from common.isolation.line import Say
from common.pairs.pair import Pair, load
from common.traffic import Access
from common.traffic.meter import Meter

APART = 1 << 14  # elements before and behind each array: what lies beyond an array's end lies in no other one
Arrays = Mapping[str, torch.Tensor]
NEAR = 1e-4  # float32 sums in another order
COARSE = 2e-2  # 16-bit elements: what is looked for here is wrong by more
DOES = {"load": "loads", "store": "stores to", "atomic": "adds to"}


def look(pair: Pair, size: str, say: Say) -> str:
    """Of the pair's variant at a size, in this process, where Triton interprets; empty if nothing can be said."""
    arrays, answer, want, accesses = _run(pair, size)
    if not any(access.kind != "load" for access in accesses):
        return "No program has stored anything: is there a tl.store, and is its mask ever true?"
    if problem := outside(accesses, arrays):
        return f"{problem[0].upper()}{problem[1:]}"
    for number, (out, right) in enumerate(zip(answer, want, strict=False)):
        name = "answer" if number == 0 else f"answer {number + 1}"
        if problem := wrong(name, out, right.double(), accesses, COARSE):
            return problem
    return "On ordinary values it is right: think of very large ones, of infinity, and of rows that are all the same."


def bounds(pair: Pair, size: str, say: Say) -> str:
    """The first access of the pair's variant beside an input at a size; empty if there is none."""
    arrays, _, _, accesses = _run(pair, size)
    return outside(accesses, arrays)


def _run(pair: Pair, size: str) -> tuple[Arrays, list[torch.Tensor], list[torch.Tensor], list[Access]]:
    """Inputs that have nothing but NaN around them, the variant's answer, the right one, all loads and stores."""
    oracle, own = (load(version.path) for version in pair.versions)
    torch.manual_seed(0)
    inputs = oracle.inputs(**pair.sizes[size], device="cpu")
    inputs |= {name: apart(value) for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    want = getattr(oracle, "reference", oracle.run)(**inputs)
    answers: list[Any] = []
    accesses = accesses_of(lambda: answers.append(own.run(**inputs)), {})
    arrays = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    return arrays, _tensors(answers[0]), _tensors(want), accesses


def _tensors(answer: Any) -> list[torch.Tensor]:
    return [answer] if isinstance(answer, torch.Tensor) else list(answer)


def outside(accesses: Sequence[Access], arrays: Arrays, knows_all: bool = False) -> str:
    """The first lane that looks, without a mask, at what lies around an array; empty if there is none.

    `knows_all`: nothing but these arrays may be looked at; else there may be others, elsewhere.
    """
    for access in accesses:
        places = access.addresses[access.mask].reshape(-1).astype(np.int64)
        beside = {name: _distances(places, array) for name, array in arrays.items()}
        nearest = np.min([*beside.values()], axis=0)
        odd = np.nonzero((nearest > 0) & (knows_all | (nearest < APART)))[0]
        if len(odd):
            name = min(beside, key=lambda each: beside[each][odd[0]])
            array = arrays[name]
            offset = (int(places[odd[0]]) - array.data_ptr()) // array.element_size()
            does = f"program {access.program} {DOES[access.kind]} {name} at offset {offset}"
            return f"{does}, but {name} has {array.numel()} elements: what has to be masked?"
    return ""


def _distances(places: NDArray[np.int64], array: torch.Tensor) -> NDArray[np.int64]:
    """Of each address, in bytes from the array's nearest end; 0 inside."""
    begin, end = array.data_ptr(), array.data_ptr() + array.nbytes
    return np.maximum(np.maximum(begin - places, places - (end - 1)), 0)


def apart(array: torch.Tensor) -> torch.Tensor:
    """A contiguous copy in the middle of a larger array, which holds NaN (or the largest number) elsewhere."""
    fill = (
        float("nan") if array.is_floating_point() else torch.iinfo(array.dtype).max if array.dtype != torch.bool else 1
    )
    whole = torch.full((array.numel() + 2 * APART,), fill, dtype=array.dtype)
    return whole[APART : APART + array.numel()].view(array.shape).copy_(array)


def accesses_of(run: Callable[..., None], arrays: Arrays, is_real: bool = True) -> list[Access]:
    """Those of all programs. Not `is_real`: nothing is loaded or stored."""
    from common.traffic.kernels import counted  # imports triton

    heard: list[Access] = []
    with counted(Meter(heard=heard), is_real=is_real):
        run(*arrays.values())
    return heard


def wrong(name: str, out: torch.Tensor, want: torch.Tensor, accesses: Sequence[Access], near: float = NEAR) -> str:
    """The first wrong element, and what it looks like; empty if there is none. `accesses`: those that made it."""
    is_wrong = ~torch.isclose(out.double(), want, rtol=near, atol=near, equal_nan=True).reshape(-1)
    if not is_wrong.any():
        return ""
    first = int(is_wrong.nonzero()[0])
    got, right = float(out.reshape(-1)[first]), float(want.reshape(-1)[first])
    said = f"{_element(name, first, want)} should be {right:.5g}"
    written = _written_by(out, accesses)
    if first not in written and written:
        behind = "Nor is anything behind it: does the grid have enough programs?"
        missing = out.numel() - len(written)
        some = f"{missing:,} of {out.numel():,} elements are not: which program should write this one?"
        return f"{said}, but is never written. {behind if max(written) < first else some}"
    said += f", got {got:.5g} ({int(is_wrong.sum()):,} of {want.numel():,} elements are wrong)"
    by = sorted(written.get(first, ()))
    if len(by) > 1:
        return f"{said}. Programs {by[0]} and {by[1]} both write it: do its offsets depend on the program?"
    same = torch.isclose(want, torch.tensor(got, dtype=want.dtype), rtol=NEAR, atol=0).reshape(-1).nonzero()
    return f"{said}. That belongs into {_element(name, int(same[0]), want)}" if len(same) else said


def _written_by(out: torch.Tensor, accesses: Sequence[Access]) -> dict[int, set[int]]:
    """Of each element that is stored to: by which programs."""
    begin, found = out.data_ptr(), dict[int, set[int]]()
    for access in accesses:
        if access.kind != "load":
            places = access.addresses[access.mask].reshape(-1).astype(np.int64) - begin
            for place in places[(places >= 0) & (places < out.nbytes)] // out.element_size():
                found.setdefault(int(place), set()).add(access.program)
    return found


def _element(name: str, place: int, array: torch.Tensor) -> str:
    index = np.unravel_index(place, tuple(array.shape))
    return f"{name}[{', '.join(str(int(each)) for each in index)}]"
