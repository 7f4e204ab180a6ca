"""What a wrong answer of a kernel looks like, from every load and store that its programs make."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from common.checks.conditions import filled_memory
from common.isolation.line import Say
from common.learn.errors import explained
from common.learn.heard import Arrays, Heard, Made, apart, hear, no_launch, outside, unordered, uses_undefined
from common.pairs.pair import Pair, load
from common.traffic import Access

Answers = list[tuple[torch.Tensor, torch.Tensor]]  # (own, right)
NEAR = 1e-4  # float32 sums in another order
FINE = 1e-3  # the same, of long sums and of numbers that cancel
COARSE = 2e-2  # 16-bit elements: what is looked for here is wrong by more


def look(pair: Pair, size: str, say: Say) -> str:
    """Of the pair's variant at a size, in this process, where Triton interprets; empty if nothing can be said."""
    try:
        arrays, answers, heard = followed(pair, size)
    except Exception as error:  # noqa: BLE001 (a reader's kernel may raise anything)
        return _sentence(explained(error))
    if not any(access.kind != "load" and access.mask.any() for access in heard.accesses):
        return "No program has stored anything: is there a tl.store, and is its mask ever true?"
    problem = outside(heard.accesses, arrays, knows_all=True) or _differs(answers, heard.accesses)
    problem = problem or unordered(heard.stores, arrays) or _undefined(pair, size, heard)
    if problem:
        return _sentence(problem)
    return "On ordinary values it is right: think of very large ones, of infinity, and of rows that are all the same."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def bounds(pair: Pair, size: str, say: Say) -> str:
    """What a right answer of the pair's variant at a size owes to luck: what is beside an array, which lane is last."""
    arrays, _, heard = followed(pair, size)
    problem = no_launch(heard) or outside(heard.accesses, arrays, knows_all=True) or unordered(heard.stores, arrays)
    return problem or _undefined(pair, size, heard)


def all_bounds(pair: Pair, sizes: Sequence[str], say: Say) -> str:
    """The same at several sizes, in one process: the first of them that owes something to luck."""
    for number, size in enumerate(sizes):
        say(size, number / len(sizes))
        if problem := bounds(pair, size, say):
            return f"at size {size}: {problem}"
    return ""


def followed(pair: Pair, size: str, undefined: float | None = None) -> tuple[Arrays, Answers, Heard]:
    """Inputs that have nothing but NaN around them, the variant's answers with the right ones, what its programs do."""
    oracle, own = (load(version.path) for version in pair.versions)
    torch.manual_seed(0)
    inputs = oracle.inputs(**pair.sizes[size], device="cpu")
    inputs |= {name: apart(value) for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    want = getattr(oracle, "reference", oracle.run)(**inputs)
    answers: list[Any] = []
    with Made() as made, filled_memory():  # what is read or added to before it is written is NaN
        state = own.setup(**inputs) if hasattr(own, "setup") else {}
        heard = hear(lambda: answers.append(own.run(**inputs, **state)), {}, undefined=undefined)
    arrays = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    arrays |= {_name(number): out for number, out in enumerate(_tensors(answers[0]))}
    arrays |= {f"tensor {number} that torch made": each for number, each in enumerate(made.tensors)}
    return arrays, list(zip(_tensors(answers[0]), _tensors(want), strict=False)), heard


def _name(number: int) -> str:
    return "answer" if number == 0 else f"answer {number + 1}"


def _differs(answers: Answers, accesses: Sequence[Access]) -> str:
    """The first answer that is wrong, and how; empty if there is none."""
    for number, (out, right) in enumerate(answers):
        near = COARSE if out.element_size() < 4 else FINE
        if problem := wrong(_name(number), out, right.double(), accesses, near):
            return problem
    return ""


def _undefined(pair: Pair, size: str, heard: Heard) -> str:
    return uses_undefined(lambda value: bool(_differs(followed(pair, size, value)[1], [])), heard)


def _tensors(answer: Any) -> list[torch.Tensor]:
    return [answer] if isinstance(answer, torch.Tensor) else list(answer)


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
        return f"{said}, but is never written. {_not_written(out, first, accesses, written)}"
    said += f", got {got:.5g} ({int(is_wrong.sum()):,} of {want.numel():,} elements are wrong)"
    by = sorted(written.get(first, ()))
    is_sum = any(access.kind == "atomic" for access in accesses)
    if is_sum and np.isnan(got):
        return f"{said}. tl.atomic_add adds to what {name} holds before the launch: set it to 0 first"
    if is_sum and len(by) > 1:
        return f"{said}. {len(by)} programs add to it: do they add every term once, and was {name} set to 0 first?"
    if len(by) > 1:
        one, two = ({place for place, programs in written.items() if program in programs} for program in by[:2])
        asks = "do its offsets depend on the program?" if one <= two or two <= one else "is the stride right?"
        return f"{said}. Programs {by[0]} and {by[1]} both write it: {asks}"
    same = torch.isclose(want, torch.tensor(got, dtype=want.dtype), rtol=NEAR, atol=0).reshape(-1).nonzero()
    return f"{said}. That belongs into {_element(name, int(same[0]), want)}" if len(same) else said


def _not_written(out: torch.Tensor, first: int, accesses: Sequence[Access], written: Mapping[int, set[int]]) -> str:
    """Why an element is not stored to, as far as the masks and the grid show it."""
    missing = [place for place in range(out.numel()) if place not in written]
    address, last = (out.data_ptr() + place * out.element_size() for place in (first, missing[-1]))
    masked = [(each.program, each.addresses[~each.mask]) for each in accesses if each.kind != "load"]
    if any((places == last).any() for _, places in masked):  # else whole programs are missing
        for program, places in masked:
            if (places == address).any():
                return f"Program {program} has a lane for it, which is masked: is the mask right?"
    if max(written) < first:
        return "Nor is anything after it: does the grid have enough programs?"
    return f"{len(missing):,} of {out.numel():,} elements are not: which program should write this one?"


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
