"""Pictures side by side, and their differences in words, computed from the counts."""

from collections.abc import Callable, Iterable
from operator import attrgetter, methodcaller

from rich.console import Console

from common.pairs.pair import short
from common.pairs.wide_tables import TIE, print_table, print_wrapped
from common.xray.occupancy import MACHINES
from common.xray.picture import Picture
from common.xray.sass import INSTRUCTION, KINDS, TENSOR, Anatomy

NONE = "-"


def facts(kernel: Anatomy) -> dict[str, str]:
    """A kernel's facts by the name of the row; empty if it has none of this kind."""
    held = kernel.occupancy
    return {
        "threads a block": str(kernel.threads),
        "registers a thread": str(kernel.registers),
        "spilled": f"{kernel.spills} instructions" if kernel.spills else "nothing",
        "shared memory a block": f"{kernel.shared_bytes:,} bytes",
        "warps an SM can hold": f"{held.warps}, {held.share:.0%} ({held.limited_by})",
        "instructions": str(kernel.instructions),
        "global loads without a store between": str(kernel.loads_in_a_row or ""),
        **{what: _by_width(kernel, what) for what in KINDS.values()},
        "tensor-core instructions": ", ".join(f"{count} {opcode}" for opcode, count in kernel.tensor.items()),
    }


def _by_width(kernel: Anatomy, what: str) -> str:
    widths = sorted((bits, count) for (kind, bits), count in kernel.counts.items() if kind == what)
    return ", ".join(f"{count} x {bits} bit" if bits else str(count) for bits, count in widths)


def rows(pictures: Iterable[Picture]) -> list[list[str]]:
    """A table of one architecture's pictures: the headings (version and kernel), then one row per fact."""
    columns = [(short(picture.label), kernel) for picture in pictures for kernel in picture.kernels]
    columns_facts = [facts(kernel) for _, kernel in columns]
    heading = ["", *(f"{label} {kernel.kernel}" for label, kernel in columns)]
    names = [name for name in (columns_facts[0] if columns_facts else []) if any(row[name] for row in columns_facts)]
    return [heading, *([name, *(row[name] or NONE for row in columns_facts)] for name in names)]


def differences(base: list[Anatomy], other: list[Anatomy]) -> list[str]:
    """One line per difference between a variant's kernels and the baseline's. Both have at least one kernel."""

    def both(of: Callable[[Anatomy], int], pool: Callable[[Iterable[int]], int] = sum) -> tuple[int, int]:
        return pool(map(of, base)), pool(map(of, other))

    lines = _change(len(base), len(other), "{after} kernel{s} instead of {before}")
    for what in ("global loads", "global stores", "shared loads", "shared stores"):
        before, after = both(methodcaller("widest", what), max)
        if before and after:
            lines += _change(before // 8, after // 8, what + " move up to {after} bytes at once instead of {before}")
    template = "up to {after} global load{s} without a store between, instead of {before}"
    lines += _change(*both(attrgetter("loads_in_a_row"), max), template)
    template = "{after} tensor-core instruction{s} instead of {before}"
    lines += _change(*both(lambda kernel: sum(kernel.tensor.values())), template)
    for what in ("shared stores", "barriers", "shuffles", "warp reductions", "global atomics", "shared atomics"):
        before, after = both(methodcaller("total", what))
        if not (before and after):
            has = f"has {what} ({after}), the baseline none" if after else f"has no {what}, the baseline {before}"
            lines += _change(before, after, has)
        elif what.endswith("atomics"):
            lines += _change(before, after, f"{{after}} {what[:-1]}{{s}} in its code instead of {{before}}")
    template = "{after} instruction{s} that spill registers to memory instead of {before}"
    lines += _change(*both(attrgetter("spills")), template)
    return lines + _resources(*(max(kernels, key=attrgetter("instructions")) for kernels in (base, other)))


def _resources(base: Anatomy, other: Anatomy) -> list[str]:
    """Differences in the resources of the kernels with the most instructions."""
    room = "room for {after} warps an SM instead of {before}, limited by "
    return [
        *_change(base.registers, other.registers, "{after} registers a thread instead of {before}"),
        *_change(
            base.shared_bytes, other.shared_bytes, "{after:,} bytes of shared memory a block instead of {before:,}"
        ),
        *_change(base.occupancy.warps, other.occupancy.warps, room + other.occupancy.limited_by),
    ]


def _change(before: int, after: int, template: str) -> list[str]:
    """The line with its figures, if they differ; `{s}` is the plural of `after`."""
    return [template.format(before=before, after=after, s="s" * (after != 1))] if before != after else []


def words(pictures: list[Picture]) -> list[str]:
    """The lines below one architecture's table: differences from the baseline, and what cannot be shown."""
    first, lines = pictures[0], []
    for picture in pictures:
        name = short(picture.label)
        if picture.reason:
            lines.append(f"{name}: {picture.reason}")
        elif picture is not first and first.kernels and picture.kernels:
            changes = differences(first.kernels, picture.kernels)
            lines += [f"{name}: {line}" for line in changes or ["the same resources and accesses as the baseline"]]
    return lines


def skeleton(kernel: Anatomy) -> list[str]:
    """The counted instructions of a kernel's machine code, each with its address and its kind."""
    lines = []
    for line in kernel.sass.splitlines():
        opcode = match[1].split(".")[0] if (match := INSTRUCTION.match(line)) else ""
        if what := "tensor cores" if TENSOR.match(opcode) else KINDS.get(opcode, ""):
            address, code = line.strip().removeprefix("/*").split("*/", 1)
            lines.append((address, what, code.strip(" ;")))
    width = max((len(what) for _, what, _ in lines), default=0)
    rest = kernel.instructions - len(lines)
    last = f"and {rest} other instruction{'s' * (rest != 1)}"
    return [*(f"{address}  {what:{width}}  {code}" for address, what, code in lines), last]


def by_architecture(pictures: list[Picture]) -> dict[str, list[Picture]]:
    names = dict.fromkeys(picture.architecture for picture in pictures)
    return {name: [picture for picture in pictures if picture.architecture == name] for name in names}


def print_pictures(title: str, pictures: list[Picture], console: Console, code: str = "") -> None:
    """Print the tables. `code`: also print the machine code (sass), or the code that it was made from (ptx)."""
    if not any(picture.kernels for picture in pictures):
        for label, reason in dict.fromkeys((picture.label, picture.reason) for picture in pictures):
            print_wrapped(f"{title} {label.removeprefix('optimized/')}: {reason}", console)
        return
    for architecture, group in by_architecture(pictures).items():
        heading, *body = rows(group)
        name = f"{title}, compiled for {architecture} ({MACHINES[architecture].name})"
        print_table(name, heading, [[_unbroken_cell(cell) for cell in row] for row in body], console)
        for line in words(group):
            print_wrapped(line, console)
        for picture in group if code else []:
            for kernel in picture.kernels:
                console.print(f"\n{picture.label} {kernel.kernel}, {architecture}:", markup=False)
                console.print(getattr(kernel, code), markup=False, soft_wrap=True)


def _unbroken_cell(cell: str) -> str:
    """A cell in which `4 x 32 bit` is not broken."""
    return cell.replace(" x ", f"{TIE}x{TIE}").replace(" bit", f"{TIE}bit")
