"""The first wrong element of an array, and what it looks like, from the loads and stores that made it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from common.learn.failure_text import element
from common.traffic import Access

NEAR = 1e-4  # float32 sums in another order
SMALL = 0.05  # of the largest right number: below it an error is one of rounding, or of a formula that is nearly right
OVERFLOW = "Infinity on the way makes this: the exponential of a large number"
ENOUGH = 16  # wrong values that belong to other elements: one of them may be equal by chance


def mismatch_text(name: str, out: torch.Tensor, want: torch.Tensor, accesses: Sequence[Access]) -> str:
    """The first wrong element, and what it looks like; empty if there is none. `accesses`: those that made it."""
    return ". ".join(filter(None, first_mismatch(name, out, want, accesses)))


def first_mismatch(
    name: str,
    out: torch.Tensor,
    want: torch.Tensor,
    accesses: Sequence[Access],
    near: float = NEAR,
    scale: float = 1.0,
    is_fresh: bool = False,
) -> tuple[str, str]:
    """The same in two parts. An error of `near` is accepted, of each value and of `scale`.

    `is_fresh`: its memory held NaN before.
    """
    is_wrong = ~torch.isclose(out.double(), want, rtol=near, atol=near * scale, equal_nan=True).reshape(-1)
    if not is_wrong.any():
        return "", ""
    first = int(is_wrong.nonzero()[0])
    got, right = (float(values.reshape(-1)[first]) + 0.0 for values in (out, want))  # no -0
    this, written = element(name, first, want.shape), _writers(out, accesses)
    if first not in written and (written or (is_fresh and math.isnan(got))):
        return f"{this} is never written (it should be {right:.5g})", _why_unwritten(out, first, accesses, written)
    share = f"{int(is_wrong.sum()):,} of {want.numel():,} elements are wrong"
    text = f"{this} should be {right:.5g}, got {got:.5g} ({share})"
    looks = _symptom(name, first, out.reshape(-1)[is_wrong], want, accesses, written)
    return text, looks or _arithmetic(out.reshape(-1)[is_wrong], want.reshape(-1)[is_wrong], want)


def _symptom(
    name: str,
    first: int,
    wrong_ones: torch.Tensor,
    want: torch.Tensor,
    accesses: Sequence[Access],
    written: Mapping[int, set[int]],
) -> str:
    """What wrong elements look like, from the programs that wrote the first and from their values, `wrong_ones`."""
    by, got = sorted(written.get(first, ())), float(wrong_ones[0])
    is_sum = any(access.kind == "atomic" for access in accesses)
    if is_sum and math.isnan(got):
        return f"`tl.atomic_add` adds to what {name} holds before the launch: set it to 0 first"
    if is_sum and len(by) > 1:
        return f"{len(by)} programs add to it: do they add every term once, and was {name} set to 0 first?"
    if len(by) > 1:
        one, two = ({place for place, programs in written.items() if program in programs} for program in by[:2])
        asks = "do its offsets depend on the program?" if one <= two or two <= one else "is the stride right?"
        return f"Programs {by[0]} and {by[1]} both write it: {asks}"
    same = torch.isclose(wrong_ones[:ENOUGH, None].double(), want.reshape(1, -1), rtol=NEAR, atol=0)
    all_belong = got and bool(same.any(1).all())
    return f"That belongs into {element(name, int(same[0].nonzero()[0]), want.shape)}" if all_belong else ""


def _arithmetic(got: torch.Tensor, right: torch.Tensor, want: torch.Tensor) -> str:
    """What the wrong values look like where each stands in its place."""
    if right.isfinite().all() and not got.isfinite().any():
        half = ", or a number above 65,504 that is rounded to float16" * (got.dtype == torch.float16)
        return f"{OVERFLOW}{half}"
    error, largest = (got.double() - right).abs().max(), want.abs().nan_to_num(posinf=0.0).max()
    if error <= SMALL * largest:
        near = f"All are near (off by at most {float(error / largest):.1g} of the largest number)"
        return f"{near}: are sums or numbers on the way rounded to 16 bits, or is a formula only nearly right?"
    return ""


def _why_unwritten(out: torch.Tensor, first: int, accesses: Sequence[Access], written: Mapping[int, set[int]]) -> str:
    """Why an element is not stored to, as far as the masks and the grid show it."""
    missing = [place for place in range(out.numel()) if place not in written]
    address, last = (out.data_ptr() + place * out.element_size() for place in (first, missing[-1]))
    masked = [(access.program, access.addresses[~access.mask]) for access in accesses if access.kind != "load"]
    if any((places == last).any() for _, places in masked):  # else whole programs are missing
        for program, places in reversed(masked):  # a block that is wider than its row reaches into the next ones
            if (places == address).any():
                return f"Program {program} has a lane for it, which is masked: is the mask right?"
    if not written:
        return "No other element is, either: does a program store to it?"
    if max(written) < first:
        return "Nor is anything after it: does the grid have enough programs?"
    return f"{len(missing):,} of {out.numel():,} elements are not: which program should write this one?"


def _writers(out: torch.Tensor, accesses: Sequence[Access]) -> dict[int, set[int]]:
    """Of each element that is stored to: by which programs."""
    begin, writers = out.data_ptr(), dict[int, set[int]]()
    for access in accesses:
        if access.kind != "load":
            places = access.addresses[access.mask].reshape(-1).astype(np.int64) - begin
            for place in places[(places >= 0) & (places < out.nbytes)] // out.element_size():
                writers.setdefault(int(place), set()).add(access.program)
    return writers
