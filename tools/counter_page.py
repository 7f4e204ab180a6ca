"""recorded/<device>/traffic.md, and the same on the console: exact counts beside a GPU's counters."""

from collections.abc import Iterable
from pathlib import Path
from statistics import median

from common.pairs.pair import short
from common.record.files import Problems
from common.show.formats import binary, digits
from common.show.tables import head, line, source
from tools import counter_truth
from tools.counted_launches import MODELS
from tools.counter_truth import AGREES, L2_READ, MEANINGS, NEAR, READ, WAYS, WRITTEN, ComparedKernel, Truth

LOADS = ("load", "atomic", "TMA load")
NAMES = ("pair", "version", "kernel", "size")
HEADINGS = (*NAMES, "sectors, counted", "by the GPU", "off", "")
MEMORY_HEADINGS = (
    *NAMES, "L2 reads / loads", "read, by the GPU", *(f"model, {model}" for model in MODELS), "written, by the GPU",
    "in all",
)  # fmt: skip
INTRODUCTION = """# Exact counts beside Nsight Compute's counters: {name}

Each kernel was profiled once, with empty caches, and the same launches were counted
([how](/tools/counter_truth.py)).
{source}.

{agree} of {all} kernels agree within {near:.0%}, {exact} of them to the last sector. At these sizes rows begin at
multiples of 32 bytes. At other sizes neighbouring warps share sectors; this is not compared here."""
MEMORY = """## L2 and memory

L2 reads / loads: sectors requested from the L2, over the counted sectors of loads. L1 serves the rest, and the GPU
merges some requests of neighbouring SMs. Then: bytes that the GPU read from memory, and how much more or less the
model of the L2 reads. The model has three forms: one program at a time on each SM; as many programs as an SM holds;
the same with half of the L2, as if each half of the SMs had its own copy of the data. The model has no L1. Last:
bytes written by the GPU until the kernel ends, and in all. The GPU's figure lacks what the L2 still holds and
writes later."""


def _names(kernel: ComparedKernel) -> list[str]:
    size = ", ".join(f"{name}={value}" for name, value in kernel.size.items())
    return [kernel.pair, short(kernel.version), kernel.kernel, size]


def rows(truth: Truth) -> list[list[str]]:
    """The rows under HEADINGS, one per kernel."""
    table_rows = []
    for kernel in truth.kernels:
        off = "" if kernel.is_exact else f"{max(kernel.off.values(), key=abs):+.2%}"
        measured = sum(map(kernel.counter_sectors, WAYS))
        table_rows.append([*_names(kernel), f"{kernel.sectors:,}", f"{measured:,.0f}", off, kernel.agreement])
    return table_rows


def memory_rows(truth: Truth) -> list[list[str]]:
    """The rows under MEMORY_HEADINGS, one per kernel; none for a kernel without counters on this GPU."""
    table_rows = []
    for kernel in truth.kernels:
        loads, l2_reads = sum(kernel.counted.get(way, 0) for way in LOADS), kernel.counters.get(L2_READ)
        read, written = (binary(kernel.counters[name]) if name in kernel.counters else "" for name in (READ, WRITTEN))
        off = ["" if (by := kernel.model_off(model)) is None else f"{by:+.1%}" for model in MODELS]
        of_loads = digits(l2_reads / loads) if l2_reads and loads else ""
        table_rows.append([*_names(kernel), of_loads, read, *off, written, binary(kernel.counted["written bytes"])])
    return table_rows


def errors(truth: Truth) -> list[str]:
    """One line per model: its error for kernels whose bytes fit in the L2, and for the others."""
    size, lines = truth.environment["device"]["cache_bytes"], []
    for fits, what in ((True, "fits into"), (False, "is larger than")):
        kernels = [kernel for kernel in truth.kernels if (kernel.touched_bytes <= size) == fits]
        for model in MODELS:
            off = [by for kernel in kernels if (by := kernel.model_off(model)) is not None]
            if off:
                middle, worst = f"{median(map(abs, off)):.1%}", f"{max(off, key=abs):+.1%}"
                lines.append(f"data of a kernel {what} the L2 ({len(off)}), {model}: {middle} off, at most {worst}")
    return lines


def markdown(path: Path, truth: Truth) -> str:
    """The page."""
    name, classes = truth.environment["device"]["name"], truth.classes
    values = {"agree": classes[AGREES], "all": len(truth.kernels), "near": NEAR, "source": source((path, truth))}
    values["exact"] = sum(kernel.is_exact for kernel in truth.kernels)
    class_rows = [[name, str(classes[name]), meaning] for name, meaning in MEANINGS.items() if classes[name]]
    parts = [
        [INTRODUCTION.format(name=name, **values)],
        _table(("class", "kernels", "what it means"), class_rows),
        ["## Sectors"],
        _table(HEADINGS, rows(truth)),
        [MEMORY],
        ["The model's error, half of the kernels below it and the worst:"],
        [f"- {text}" for text in errors(truth)],
        _table(MEMORY_HEADINGS, memory_rows(truth)),
        [f"Counters that are missing here: {', '.join(truth.missing)}."] if truth.missing else [],
        [f"- left out: {what}: {reason}" for what, reason in truth.left_out.items()],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _table(headings: tuple[str, ...], rows: Iterable[list[str]]) -> list[str]:
    return [*head(headings), *map(line, rows)]


def pages(problems: Problems | None = None, folder: Path | None = None) -> dict[Path, str]:
    """The page of each device with a recorded comparison. `problems`: as in `Format.load_all`."""
    comparisons = counter_truth.FORMAT.load_all(counter_truth.FILE, folder, problems)
    return {path.with_suffix(".md"): markdown(path, truth) for path, truth in comparisons}
