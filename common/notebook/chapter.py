"""A chapter's pairs in its notebook: measured now where there is a GPU, else as they were recorded on one.

And their machine code, compiled for GPUs that need not be here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from IPython.display import Markdown, display
from matplotlib.figure import Figure

from common.engine.runner import run_pairs
from common.machine.device import has_gpu
from common.notebook.cells import show, table
from common.notebook.gpu import gpu
from common.pairs.pair import ROOT, Pair, discover
from common.pairs.sizes import class_of
from common.record.archive import current, recorded, recorded_sizes, together
from common.record.files import Problems
from common.record.result import PairResult, Record
from common.show import plot
from common.xray.occupancy import MACHINES
from common.xray.picture import Picture, xray
from common.xray.sass import Anatomy
from common.xray.show import by_architecture, rows, skeleton, words


@dataclass(frozen=True)
class Chapter:
    """`pairs` by name; `results`: those that were revealed and have a ratio, by name and size."""

    name: str
    pairs: dict[str, Pair]
    results: dict[tuple[str, str], PairResult] = field(default_factory=dict)
    compiled: dict[tuple[str, ...], list[Anatomy]] = field(default_factory=dict)

    def recorded(self, size: str = "default") -> Record | None:
        """The newest GPU's record at a size (`large/8192x8192`) or a class of sizes (`large`).

        Without the pairs that have changed since; None if there is no record.
        """
        with _named() as problems:
            records = [record for _, record in recorded(self.name, class_of(size), problems=problems)]
        found = together([record for record in records if record.environment["device"]["kind"] == "cuda"])
        return found and self._only(found, lambda pair: size in (pair.size, class_of(pair.size)))

    def _only(self, record: Record, wanted: Callable[[PairResult], bool]) -> Record:
        """What is wanted of a record, and has not changed since."""
        is_current = current([*self.pairs.values()])
        return replace(record, pairs=[pair for pair in record.pairs if is_current(pair) and wanted(pair)])

    def here_or_recorded(self, names: Sequence[str], size: str = "default", measure: bool = True) -> Record | None:
        """These pairs, in this order: measured now where there is a GPU, else as a GPU's record has them, if there is.

        `size`: one, or a class of them. A pair that has changed since then, or has no such size, is left out. With
        `measure=False` the record is shown on a GPU, too: for pairs that take long.
        """
        asked = [self.pairs[name] for name in names]
        record = run_pairs(asked, size, fast=True) if has_gpu() and measure else self.recorded(size)
        return record and replace(record, pairs=[pair for name in names for pair in record.pairs if pair.name == name])

    def reveal(self, names: Sequence[str], size: str = "default", measure: bool = True) -> dict[str, PairResult]:
        """Shows what `here_or_recorded` finds of these pairs, says what is missing; returns what has a ratio.

        By the pair's name; where `size` is a class, by its name and size: `add large/8192x8192`.
        """
        measured = has_gpu() and measure
        record = self.here_or_recorded(names, size, measure)
        pairs = record.pairs if record else []
        if record and pairs:
            display(Markdown("**Measured here**" if measured else "**Recorded, not measured here**"), show(record))
        if missing := [name for name in names if name not in {pair.name for pair in pairs}]:
            at_size = "" if size == "default" else f" at size {size}"
            why = "nothing is recorded of it as it is now"
            why = why if has_gpu() else f"there is no GPU here, and {why}"
            print(f"no figures of {', '.join(missing)}{at_size}: {'it has no such size' if measured else why}")
        believed = [pair for pair in pairs if any(row.ratio for row in pair.rows)]
        self.results.update({(pair.name, pair.size): pair for pair in believed})
        is_class = size != "default" and "/" not in size
        return {f"{pair.name} {pair.size}" if is_class else pair.name: pair for pair in believed}

    def sweep(self, name: str) -> Figure | None:
        """A pair over all its sizes as a GPU's records have them; None if nothing is recorded of it as it is now.

        As by `benchmark.py --size all --plot`: ratio over size; where memory is the limit, also bandwidth over bytes.
        """
        with _named() as problems:
            there = recorded_sizes(self.name, problems=problems)
        found = [self._only(record, lambda pair: pair.name == name) for _, record in there]
        records = [record for record in found if record.pairs]
        return plot.sweep(*records) if records else None

    def kernels(self, name: str, size: str = "default", label: str = "optimized", arch: str = "") -> list[Anatomy]:
        """Of one version, compiled at this size: for the GPU that the notebook computes with, or another."""
        key = (name, size, label, arch or gpu().arch)
        if key not in self.compiled:
            self.compiled[key] = kernels_of(self.pairs[name], *key[1:])
        return self.compiled[key]


@contextmanager
def _named() -> Iterator[Problems]:
    """Files that are bad: said, and done without."""
    problems: Problems = {}
    yield problems
    for text in problems.values():
        print(f"not shown, though recorded: {text}")


def chapter(number: int) -> Chapter:
    """Raises ContractError."""
    return Chapter(f"ch{number}", {pair.name: pair for pair in discover(ROOT / f"ch{number}")})


def show_xray(pair: Pair, archs: Sequence[str] = ("sm_90",), labels: Sequence[str] | None = None) -> Markdown:
    """A pair's kernels as machine code, a table for each architecture, and what differs in words.

    `labels`: the variants to compare with the baseline, by their labels; None for all.
    """
    variants = tuple(version for version in pair.variants if labels is None or version.label in labels)
    lines = []
    for architecture, pictures in by_architecture(xray(replace(pair, variants=variants), archs)).items():
        heading, *body = rows(pictures)
        lines += [f"**{pair.name}**, compiled for {architecture} ({MACHINES[architecture].name})", ""]
        lines += [table(heading, body).data, ""] if body else []
        lines += [*(f"- {line}" for line in words(pictures)), ""]
    return Markdown("\n".join(lines))


def show_code(pair: Pair, label: str = "optimized", arch: str = "sm_90") -> Markdown:
    """What X-ray counts of a version's machine code, instruction by instruction, with what each one does."""
    picture = _picture(pair, "default", label, arch)
    lines = [line for kernel in picture.kernels for line in [f"{kernel.kernel}, {arch}", *skeleton(kernel)]]
    return Markdown("\n".join(["```", *(lines or [f"{label}: {picture.reason}"]), "```"]))


def kernels_of(pair: Pair, size: str, label: str, arch: str) -> list[Anatomy]:
    """Of one version; where there are none to be seen, says why."""
    picture = _picture(pair, size, label, arch)
    if picture.reason:
        print(f"{pair.name}, {size}, {label}: {picture.reason}")
    return list(picture.kernels)


def _picture(pair: Pair, size: str, label: str, arch: str) -> Picture:
    (version,) = [version for version in pair.versions if version.label == label]
    (picture,) = xray(replace(pair, baseline=version, variants=()), [arch], size)
    return picture
