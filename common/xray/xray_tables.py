"""Pictures side by side, and their differences in words, computed from the counts."""

from collections.abc import Callable, Iterable
from operator import attrgetter, methodcaller

from rich.console import Console

from common.pairs.pair import short
from common.pairs.wide_tables import TIE, print_table, say
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
    found = sorted((bits, count) for (kind, bits), count in kernel.counts.items() if kind == what)
    return ", ".join(f"{count} x {bits} bit" if bits else str(count) for bits, count in found)


def rows(pictures: Iterable[Picture]) -> list[list[str]]:
    """A table of one architecture's pictures: the headings (version and kernel), then one row per fact."""
    columns = [(short(picture.label), each) for picture in pictures for each in picture.kernels]
    found = [facts(kernel) for _, kernel in columns]
    heading = ["", *(f"{label} {kernel.kernel}" for label, kernel in columns)]
    names = [name for name in (found[0] if found else []) if any(one[name] for one in found)]
    return [heading, *([name, *(one[name] or NONE for one in found)] for name in names)]


def differences(base: list[Anatomy], other: list[Anatomy]) -> list[str]:
    """One line per difference between a variant's kernels and the baseline's. Both have at least one kernel."""

    def both(of: Callable[[Anatomy], int], pool: Callable[[Iterable[int]], int] = sum) -> tuple[int, int]:
        return pool(map(of, base)), pool(map(of, other))

    lines = _told(len(base), len(other), "{after} kernel{s} instead of {before}")
    for what in ("global loads", "global stores", "shared loads", "shared stores"):
        before, after = both(methodcaller("widest", what), max)
        if before and after:
            lines += _told(before // 8, after // 8, what + " move up to {after} bytes at once instead of {before}")
    said = "up to {after} global load{s} without a store between, instead of {before}"
    lines += _told(*both(attrgetter("loads_in_a_row"), max), said)
    said = "{after} tensor-core instruction{s} instead of {before}"
    lines += _told(*both(lambda kernel: sum(kernel.tensor.values())), said)
    for what in ("shared stores", "barriers", "shuffles", "warp reductions", "global atomics", "shared atomics"):
        before, after = both(methodcaller("total", what))
        if not (before and after):
            has = f"has {what} ({after}), the baseline none" if after else f"has no {what}, the baseline {before}"
            lines += _told(before, after, has)
        elif what.endswith("atomics"):
            lines += _told(before, after, f"{{after}} {what[:-1]}{{s}} in its code instead of {{before}}")
    said = "{after} instruction{s} that spill registers to memory instead of {before}"
    lines += _told(*both(attrgetter("spills")), said)
    return lines + _resources(*(max(kernels, key=attrgetter("instructions")) for kernels in (base, other)))


def _resources(base: Anatomy, other: Anatomy) -> list[str]:
    """Differences in the resources of the kernels with the most instructions."""
    room = "room for {after} warps an SM instead of {before}, limited by "
    return [
        *_told(base.registers, other.registers, "{after} registers a thread instead of {before}"),
        *_told(base.shared_bytes, other.shared_bytes, "{after:,} bytes of shared memory a block instead of {before:,}"),
        *_told(base.occupancy.warps, other.occupancy.warps, room + other.occupancy.limited_by),
    ]


def _told(before: int, after: int, said: str) -> list[str]:
    """The line with its figures, if they differ; `{s}` is the plural of `after`."""
    return [said.format(before=before, after=after, s="s" * (after != 1))] if before != after else []


def words(pictures: list[Picture]) -> list[str]:
    """The lines below one architecture's table: differences from the baseline, and what cannot be shown."""
    first, lines = pictures[0], []
    for picture in pictures:
        name = short(picture.label)
        if picture.reason:
            lines.append(f"{name}: {picture.reason}")
        elif picture is not first and first.kernels and picture.kernels:
            found = differences(first.kernels, picture.kernels)
            lines += [f"{name}: {line}" for line in found or ["the same resources and accesses as the baseline"]]
    return lines


def skeleton(kernel: Anatomy) -> list[str]:
    """The counted instructions of a kernel's machine code, each with its address and its kind."""
    found = []
    for line in kernel.sass.splitlines():
        opcode = match[1].split(".")[0] if (match := INSTRUCTION.match(line)) else ""
        if what := "tensor cores" if TENSOR.match(opcode) else KINDS.get(opcode, ""):
            address, code = line.strip().removeprefix("/*").split("*/", 1)
            found.append((address, what, code.strip(" ;")))
    width = max((len(what) for _, what, _ in found), default=0)
    rest = kernel.instructions - len(found)
    last = f"and {rest} other instruction{'s' * (rest != 1)}"
    return [*(f"{address}  {what:{width}}  {code}" for address, what, code in found), last]


def by_architecture(pictures: list[Picture]) -> dict[str, list[Picture]]:
    names = dict.fromkeys(picture.architecture for picture in pictures)
    return {name: [picture for picture in pictures if picture.architecture == name] for name in names}


def print_pictures(title: str, pictures: list[Picture], console: Console, code: str = "") -> None:
    """Print the tables. `code`: also print the machine code (sass), or the code that it was made from (ptx)."""
    if not any(picture.kernels for picture in pictures):
        for label, reason in dict.fromkeys((picture.label, picture.reason) for picture in pictures):
            say(f"{title} {label.removeprefix('optimized/')}: {reason}", console)
        return
    for architecture, mine in by_architecture(pictures).items():
        heading, *body = rows(mine)
        name = f"{title}, compiled for {architecture} ({MACHINES[architecture].name})"
        print_table(name, heading, [[_tied(cell) for cell in row] for row in body], console)
        for line in words(mine):
            say(line, console)
        for picture in mine if code else []:
            for kernel in picture.kernels:
                console.print(f"\n{picture.label} {kernel.kernel}, {architecture}:", markup=False)
                console.print(getattr(kernel, code), markup=False, soft_wrap=True)


def _tied(cell: str) -> str:
    """A cell in which `4 x 32 bit` is not broken."""
    return cell.replace(" x ", f"{TIE}x{TIE}").replace(" bit", f"{TIE}bit")
