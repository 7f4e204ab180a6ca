"""recorded/<device>/traffic.md, and the same on a console: exact counts beside a GPU's counters, as tables."""

from collections.abc import Iterable
from pathlib import Path
from statistics import median

from common.calibration.chosen import MODELS
from common.calibration.truth import AGREES, FILE, FORMAT, L2_READ, MEANINGS, NEAR, READ, WAYS, WRITTEN, Compared, Truth
from common.record.files import Problems
from common.show.formats import binary, digits
from common.show.tables import head, line, source

LOADS = ("load", "atomic", "TMA load")
NAMES = ("pair", "version", "kernel", "size")
HEADINGS = (*NAMES, "sectors, counted", "by the GPU", "off", "")
MEMORY_HEADINGS = (
    *NAMES, "L2 reads / loads", "read, by the GPU", *(f"model, {model}" for model in MODELS), "written, by the GPU",
    "in all",
)  # fmt: skip
INTRODUCTION = """# Exact counts beside Nsight Compute's counters: {name}

Each kernel was profiled once, with empty caches, and the same launches were counted
([how](/common/calibration/truth.py)).
{source}.

{agree} of {all} kernels agree within {near:.0%}, {exact} of them to the last sector. At these sizes rows begin at
multiples of 32 bytes; where they do not, neighbouring warps share sectors, which is not looked at here."""
MEMORY = """## L2 and memory

L2 reads / loads: sectors that the L2 was asked for, over the sectors loaded as counted. L1 serves the rest, and the GPU
joins some requests of neighbouring SMs. Bytes read from memory, by the GPU, and by how much the model of the L2 reads
more or less: with one program at a time on each SM; with as many as an SM holds; with those, and half of the L2, as if
all were there twice, for either half of the SMs. The model has no L1. Bytes written, by the GPU until the kernel ends,
and in all: what the L2 still holds then is written later, and the GPU's figure leaves it out."""


def _names(each: Compared) -> list[str]:
    size = ", ".join(f"{name}={value}" for name, value in each.size.items())
    return [each.pair, each.version.removeprefix("optimized/"), each.kernel, size]


def rows(truth: Truth) -> list[list[str]]:
    """What HEADINGS name, of each kernel."""
    made = []
    for each in truth.kernels:
        off = "" if each.is_exact else f"{max(each.off.values(), key=abs):+.2%}"
        found = sum(map(each.found, WAYS))
        made.append([*_names(each), f"{each.sectors:,}", f"{found:,.0f}", off, each.said])
    return made


def memory_rows(truth: Truth) -> list[list[str]]:
    """What MEMORY_HEADINGS name, of each kernel; empty where this GPU has no counter."""
    made = []
    for each in truth.kernels:
        loads, asked = sum(each.counted.get(way, 0) for way in LOADS), each.counters.get(L2_READ)
        read, written = (binary(each.counters[name]) if name in each.counters else "" for name in (READ, WRITTEN))
        off = ["" if (by := each.model_off(model)) is None else f"{by:+.1%}" for model in MODELS]
        of_loads = digits(asked / loads) if asked and loads else ""
        made.append([*_names(each), of_loads, read, *off, written, binary(each.counted["written bytes"])])
    return made


def errors(truth: Truth) -> list[str]:
    """A line for each model, of kernels whose bytes the L2 holds and of those whose it does not."""
    size, said = truth.environment["device"]["cache_bytes"], []
    for fits, what in ((True, "fits into"), (False, "is larger than")):
        those = [each for each in truth.kernels if (each.touched_bytes <= size) == fits]
        for model in MODELS:
            off = [by for each in those if (by := each.model_off(model)) is not None]
            if off:
                middle, worst = f"{median(map(abs, off)):.1%}", f"{max(off, key=abs):+.1%}"
                said.append(f"what a kernel touches {what} the L2 ({len(off)}), {model}: {middle} off, at most {worst}")
    return said


def markdown(path: Path, truth: Truth) -> str:
    """The page."""
    name, classes = truth.environment["device"]["name"], truth.classes
    told = {"agree": classes[AGREES], "all": len(truth.kernels), "near": NEAR, "source": source((path, truth))}
    told["exact"] = sum(each.is_exact for each in truth.kernels)
    found = [[said, str(classes[said]), meaning] for said, meaning in MEANINGS.items() if classes[said]]
    parts = [
        [INTRODUCTION.format(name=name, **told)],
        _table(("class", "kernels", "what it means"), found),
        ["## Sectors"],
        _table(HEADINGS, rows(truth)),
        [MEMORY],
        ["The model's error, half of the kernels below it and the worst:"],
        [f"- {said}" for said in errors(truth)],
        _table(MEMORY_HEADINGS, memory_rows(truth)),
        [f"Counters that are missing here: {', '.join(truth.missing)}."] if truth.missing else [],
        [f"- left out: {what}: {why}" for what, why in truth.left_out.items()],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _table(headings: tuple[str, ...], found: Iterable[list[str]]) -> list[str]:
    return [*head(headings), *map(line, found)]


def pages(problems: Problems | None = None, folder: Path | None = None) -> dict[Path, str]:
    """The page of each device of which a comparison is recorded; `problems`: as of `Format.recorded`."""
    found = FORMAT.recorded(FILE, folder, problems)
    return {path.with_suffix(".md"): markdown(path, truth) for path, truth in found}
