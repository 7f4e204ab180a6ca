"""Pictures side by side, and what differs between them in plain words, computed from the counts."""

from collections.abc import Iterable

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from common.xray.occupancy import MACHINES
from common.xray.picture import Picture
from common.xray.sass import INSTRUCTION, KINDS, TENSOR, Anatomy

NONE = "-"
IN_A_ROW = "global loads without a store between"


def facts(kernel: Anatomy) -> dict[str, str]:
    """What is shown of a kernel, by the name of the row; only what there is of the counts."""
    held = kernel.occupancy
    shown = {
        "threads a block": str(kernel.threads),
        "registers a thread": str(kernel.registers),
        "spilled": f"{kernel.spills} instructions" if kernel.spills else "nothing",
        "shared memory a block": f"{kernel.shared_bytes:,} bytes",
        "warps an SM can hold": f"{held.warps}, {held.share:.0%} ({held.limited_by})",
        "instructions": str(kernel.instructions),
    }
    if kernel.loads_in_a_row:
        shown[IN_A_ROW] = str(kernel.loads_in_a_row)
    for what in dict.fromkeys(KINDS.values()):
        found = {bits: count for (kind, bits), count in kernel.counts.items() if kind == what}
        if found:
            parts = [f"{count} x {bits} bit" if bits else str(count) for bits, count in sorted(found.items())]
            shown[what] = ", ".join(parts)
    if kernel.tensor:
        shown["tensor-core instructions"] = ", ".join(f"{count} {opcode}" for opcode, count in kernel.tensor.items())
    return shown


def rows(pictures: Iterable[Picture]) -> list[list[str]]:
    """A table of one architecture's pictures: the headings (version and kernel), then a row for each fact."""
    columns = [(picture.label, kernel) for picture in pictures for kernel in picture.kernels]
    found = [facts(kernel) for _, kernel in columns]
    names = list(dict.fromkeys(name for one in found for name in one))
    order = dict.fromkeys([*list(found[0])[:6], IN_A_ROW, *KINDS.values(), "tensor-core instructions"] if found else [])
    heading = ["", *(f"{label.removeprefix('optimized/')} {kernel.kernel}" for label, kernel in columns)]
    return [heading, *([name, *(one.get(name, NONE) for one in found)] for name in order if name in names)]


def differences(base: list[Anatomy], other: list[Anatomy]) -> list[str]:
    """What the kernels of a variant do otherwise than the baseline's, a line each. Both have some."""
    lines = []
    if len(base) != len(other):
        lines.append(f"{_number(len(other), 'kernel')} instead of {len(base)}")
    for what in ("global loads", "global stores", "shared loads", "shared stores"):
        before, after = (max(kernel.widest(what) for kernel in kernels) for kernels in (base, other))
        if before and after and before != after:
            lines.append(f"{what} move up to {after // 8} bytes at once instead of {before // 8}")
    before, after = (max(kernel.loads_in_a_row for kernel in kernels) for kernels in (base, other))
    if before != after:
        lines.append(f"up to {_number(after, 'global load')} without a store between, instead of {before}")
    return lines + _instructions(base, other) + _resources(max(base, key=_weight), max(other, key=_weight))


def _instructions(base: list[Anatomy], other: list[Anatomy]) -> list[str]:
    """What one has and the other has not, or has more of."""
    lines = []
    if (after := _tensor(other)) != (before := _tensor(base)):
        lines.append(f"{_number(after, 'tensor-core instruction')} instead of {before}")
    for what in ("shared stores", "barriers", "shuffles", "warp reductions", "global atomics", "shared atomics"):
        before, after = (sum(kernel.total(what) for kernel in kernels) for kernels in (base, other))
        if bool(before) != bool(after):
            lines.append(
                f"has {what} ({after}), the baseline none" if after else f"has no {what}, the baseline {before}"
            )
        elif before != after and what.endswith("atomics"):
            lines.append(f"{_number(after, what.removesuffix('s'))} in its code instead of {before}")
    before, after = (sum(kernel.spills for kernel in kernels) for kernels in (base, other))
    if before != after:
        lines.append(f"{_number(after, 'instruction')} that spill registers to memory instead of {before}")
    return lines


def _resources(base: Anatomy, other: Anatomy) -> list[str]:
    """Of the kernels with most instructions."""
    lines = []
    if base.registers != other.registers:
        lines.append(f"{other.registers} registers a thread instead of {base.registers}")
    if base.shared_bytes != other.shared_bytes:
        lines.append(f"{other.shared_bytes:,} bytes of shared memory a block instead of {base.shared_bytes:,}")
    if base.occupancy.warps != other.occupancy.warps:
        held = f"{other.occupancy.warps} warps an SM instead of {base.occupancy.warps}"
        lines.append(f"room for {held}, limited by {other.occupancy.limited_by}")
    return lines


def _weight(kernel: Anatomy) -> int:
    return kernel.instructions


def _tensor(kernels: list[Anatomy]) -> int:
    return sum(sum(kernel.tensor.values()) for kernel in kernels)


def _number(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def words(pictures: list[Picture]) -> list[str]:
    """The lines below one architecture's table: what differs from the baseline, and what cannot be seen."""
    first, lines = pictures[0], []
    for picture in pictures:
        name = picture.label.removeprefix("optimized/")
        if picture.reason:
            lines.append(f"{name}: {picture.reason}")
        elif picture is not first and first.kernels and picture.kernels:
            found = differences(first.kernels, picture.kernels)
            lines += [f"{name}: {line}" for line in found or ["the same resources and accesses as the baseline"]]
    return lines


def skeleton(kernel: Anatomy) -> list[str]:
    """Of a kernel's machine code, the instructions that are counted, each after its address and what it does."""
    found = []
    for line in kernel.sass.splitlines():
        opcode = match[1].split(".")[0] if (match := INSTRUCTION.match(line)) else ""
        if what := "tensor cores" if TENSOR.match(opcode) else KINDS.get(opcode, ""):
            address, code = line.strip().removeprefix("/*").split("*/", 1)
            found.append((address, what, code.strip(" ;")))
    width = max((len(what) for _, what, _ in found), default=0)
    rest = _number(kernel.instructions - len(found), "other instruction")
    return [*(f"{address}  {what:{width}}  {code}" for address, what, code in found), f"and {rest}"]


def by_architecture(pictures: list[Picture]) -> dict[str, list[Picture]]:
    names = dict.fromkeys(picture.architecture for picture in pictures)
    return {name: [picture for picture in pictures if picture.architecture == name] for name in names}


def print_pictures(title: str, pictures: list[Picture], console: Console, code: str = "") -> None:
    """`code`: also print the machine code (sass), or the code that it was made from (ptx)."""
    if not any(picture.kernels for picture in pictures):
        for label, reason in dict.fromkeys((picture.label, picture.reason) for picture in pictures):
            console.print(f"{title} {label.removeprefix('optimized/')}: {reason}", markup=False, soft_wrap=True)
        return
    for architecture, mine in by_architecture(pictures).items():
        heading, *body = rows(mine)
        if body:
            name = f"{title}, compiled for {architecture} ({MACHINES[architecture].name})"
            shown = Table(*heading, title=name, box=SIMPLE, title_justify="left")
            for row in body:
                shown.add_row(*row)
            console.print(shown)
        for line in words(mine):
            console.print(line, markup=False, soft_wrap=True)
        for picture in mine if code else []:
            for kernel in picture.kernels:
                console.print(f"\n{picture.label} {kernel.kernel}, {architecture}:", markup=False)
                console.print(getattr(kernel, code), markup=False, soft_wrap=True)
