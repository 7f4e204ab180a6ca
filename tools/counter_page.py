"""recorded/<device>/traffic.md, and the same on the console: exact counts beside a GPU's counters."""

from pathlib import Path
from statistics import median

from common.pairs.pair import short
from common.record.files import Problems
from common.show.formats import binary, digits
from common.show.layout import markdown_table
from common.show.pages import page
from tools import counter_truth
from tools.counted_launches import MODELS
from tools.counter_truth import L2_READ, MEANINGS, NEAR, READ, WAYS, WRITTEN, ComparedKernel, Truth

LOADS = ("load", "atomic", "TMA load")
NAMES = ("pair", "version", "kernel", "size")
HEADINGS = (*NAMES, "sectors, counted", "by the GPU", "off", "")
MEMORY_HEADINGS = (
    *NAMES, "L2 reads / loads", "read, by the GPU", *(f"model, {model}" for model in MODELS), "written, by the GPU",
    "in all",
)  # fmt: skip


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
    classes = truth.classes
    return page(
        "tools/templates/traffic.md.jinja",
        device=truth.environment["device"]["name"],
        path=path,
        truth=truth,
        near=f"{NEAR:.0%}",
        classes=[(name, classes[name], meaning) for name, meaning in MEANINGS.items() if classes[name]],
        sectors=markdown_table(HEADINGS, rows(truth)),
        errors=errors(truth),
        memory=markdown_table(MEMORY_HEADINGS, memory_rows(truth)),
    )


def pages(problems: Problems | None = None, folder: Path | None = None) -> dict[Path, str]:
    """The page of each device with a recorded comparison. `problems`: as in `Format.load_all`."""
    comparisons = counter_truth.FORMAT.load_all(counter_truth.FILE, folder, problems)
    return {path.with_suffix(".md"): markdown(path, truth) for path, truth in comparisons}
