"""A chapter's pairs in its notebook: measured here, or as recorded on a GPU; their machine code and traffic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from IPython.display import Markdown, display
from matplotlib.figure import Figure

from common.machine.device import has_gpu
from common.notebook.cells import run_pairs, show, table
from common.notebook.named_gpu import gpu
from common.notebook.profile_figure import timeline
from common.pairs.pair import ROOT, Pair, class_of, discover
from common.record.files import Problems, RecordError, on_one_gpu
from common.record.record_file import combine_records
from common.record.result import PairResult, Record
from common.record.store import added_variants, chapter_records, current_filter, recorded_sizes
from common.show import plot, second_gpu_page
from common.show.tables import origin
from common.traffic import Traffic, traffic_tables
from common.traffic.versions import count_pair
from common.xray.occupancy import MACHINES
from common.xray.picture import Picture, xray
from common.xray.sass import Anatomy
from common.xray.xray_tables import by_architecture, rows, skeleton, words


@dataclass(frozen=True)
class Chapter:
    """The pairs of a chapter by name. `results`: revealed results with a ratio, by name and size."""

    name: str
    pairs: dict[str, Pair]
    results: dict[tuple[str, str], PairResult] = field(default_factory=dict)
    compiled: dict[tuple[str, ...], list[Anatomy]] = field(default_factory=dict)

    def recorded(self, size: str = "default") -> Record | None:
        """A GPU's record (`on_one_gpu`) at a size (`large/8192x8192`) or of a class of sizes (`large`).

        Pairs that have changed since, or have a version that was not timed, are left out. None without a record.
        """

        def is_asked(result: PairResult) -> bool:
            return size in (result.size, class_of(result.size)) and not added_variants(self.pairs[result.name], result)

        problems: Problems = {}
        every_device = chapter_records(self.name, class_of(size), problems=problems)
        _print_problems(problems)
        record = combine_records([record for _, record in on_one_gpu(every_device)])
        return record and self._only(record, is_asked)

    def _only(self, record: Record, wanted: Callable[[PairResult], bool]) -> Record:
        """The results of a record that are unchanged since, and wanted."""
        is_current = current_filter([*self.pairs.values()])
        return replace(record, pairs=[pair for pair in record.pairs if is_current(pair) and wanted(pair)])

    def here_or_recorded(self, names: Sequence[str], size: str = "default", measure: bool = True) -> Record | None:
        """These pairs, in this order: measured now on a GPU, otherwise from a GPU's record, if there is one.

        `size`: a size or a class of sizes. A pair that has changed since, or lacks the size, is left out. With
        `measure=False` the record is shown on a GPU, too: for pairs that take long.
        """
        asked = [self.pairs[name] for name in names]
        record = run_pairs(asked, size, fast=True) if measure and self._fit(names) else self.recorded(size)
        return record and replace(record, pairs=[pair for name in names for pair in record.pairs if pair.name == name])

    def _fit(self, names: Sequence[str]) -> bool:
        """Whether there is a GPU here for each process of these pairs."""
        ranks = max((self.pairs[name].ranks for name in names), default=1)
        return has_gpu() and (ranks == 1 or torch.cuda.device_count() >= ranks)

    def reveal(self, names: Sequence[str], size: str = "default", measure: bool = True) -> dict[str, PairResult]:
        """Show the result of `here_or_recorded` and name what is missing. Returns the results with a ratio.

        The keys are the pairs' names; for a class of sizes, name and size: `add large/8192x8192`.
        """
        measured = measure and self._fit(names)
        record = self.here_or_recorded(names, size, measure)
        pairs = record.pairs if record else []
        if record and pairs:
            display(Markdown("**Measured here**" if measured else "**Recorded, not measured here**"), show(record))
        if missing := [name for name in names if name not in {pair.name for pair in pairs}]:
            at_size = "" if size == "default" else f" at size {size}"
            why = "there is no GPU here, and " * (not has_gpu()) + "nothing is recorded of its present code"
            print(f"no figures of {', '.join(missing)}{at_size}: {'it has no such size' if measured else why}")
        believed = [pair for pair in pairs if any(row.ratio for row in pair.rows)]
        self.results.update({(pair.name, pair.size): pair for pair in believed})
        is_class = size != "default" and "/" not in size
        return {f"{pair.name} {pair.size}" if is_class else pair.name: pair for pair in believed}

    def result(self, name: str, size: str = "default", measure: bool = True) -> PairResult | None:
        """One pair's result of `here_or_recorded`; a line says of which machine it is. None if there is none."""
        record = self.here_or_recorded([name], size, measure)
        pairs = record.pairs if record else []
        missing = f"no figures of {name} at size {size}: nothing is recorded of its present code"
        print(f"{name}, {size}: {origin(record)}" if record and pairs else missing)
        return next(iter(pairs), None)

    def sweep(self, name: str) -> Figure | Markdown:
        """A pair over all sizes in a GPU's records; a line that says so without a record of its present code.

        As `benchmark.py --size all --plot`: the speedups of each size, and the shares of the limit.
        """
        problems: Problems = {}
        there = recorded_sizes(self.name, problems=problems)
        _print_problems(problems)
        parts = [self._only(record, lambda pair: pair.name == name) for _, record in there]
        record = combine_records([record for record in parts if record.pairs])
        return plot.sweep(record) if record else Markdown("*No figure: nothing is recorded at several sizes.*")

    def timeline(self, name: str, version: str = "baseline", size: str = "default") -> Figure | Markdown:
        """A version's profile on a GPU: made now, or recorded; a line that says so where there is none of its code."""
        try:
            return timeline(self.pairs[name], version, size)
        except RecordError as error:
            return Markdown(f"*No figure: {error}.*")

    def kernels(self, name: str, size: str = "default", label: str = "optimized", arch: str = "") -> list[Anatomy]:
        """The kernels of one version, compiled at this size for the notebook's GPU or another architecture.

        If there are none, the reason is printed.
        """
        key = (name, size, label, arch or gpu().arch)
        if key not in self.compiled:
            picture = _picture(self.pairs[name], *key[1:])
            if picture.reason:
                print(f"{name}, {size}, {label}: {picture.reason}")
            self.compiled[key] = list(picture.kernels)
        return self.compiled[key]


def _print_problems(problems: Problems) -> None:
    """Says which files are bad."""
    for text in problems.values():
        print(f"recorded, but not shown: {text}")


def chapter(number: int) -> Chapter:
    """The chapter with this number. Raises ContractError."""
    return Chapter(f"ch{number}", {pair.name: pair for pair in discover(ROOT / f"ch{number}")})


def show_xray(pair: Pair, archs: Sequence[str] = ("sm_90",)) -> Markdown:
    """A pair's kernels as machine code: a table for each architecture, and the differences in words."""
    lines = []
    for architecture, pictures in by_architecture(xray(pair, archs)).items():
        heading, *body = rows(pictures)
        lines += [f"**{pair.name}**, compiled for {architecture} ({MACHINES[architecture].name})", ""]
        lines += [table(heading, body).data, ""] if body else []
        lines += [*(f"- {line}" for line in words(pictures)), ""]
    return Markdown("\n".join(lines))


def show_code(pair: Pair, label: str = "optimized", arch: str = "sm_90") -> Markdown:
    """The instructions that X-ray counts in a version's machine code, each with what it does."""
    picture = _picture(pair, "default", label, arch)
    lines = [line for kernel in picture.kernels for line in [f"{kernel.kernel}, {arch}", *skeleton(kernel)]]
    return Markdown("\n".join(["```", *(lines or [f"{label}: {picture.reason}"]), "```"]))


def _picture(pair: Pair, size: str, label: str, arch: str) -> Picture:
    (picture,) = xray(replace(pair, baseline=pair.version(label), variants=()), [arch], size)
    return picture


def show_counts(pair: Pair, size: str = "count", labels: Sequence[str] | None = None) -> dict[str, Traffic]:
    """Show a pair's versions side by side, as multiples of the minimum work. Returns the traffic by label.

    All programs run at the sizes `count` and `check`, a sample of each grid's at other sizes. `labels`: the variants to
    count with the baseline; None for all.
    """
    variants = tuple(version for version in pair.variants if labels is None or version.label in labels)
    versions = count_pair(replace(pair, variants=variants), size, MACHINES[gpu().arch])
    headings, rows = traffic_tables.rows(versions, {}, "")
    lines = [f"**{traffic_tables.title(pair.name, size, versions)}**", "", table(headings, rows).data if rows else ""]
    display(Markdown("\n".join([*lines, "", *(f"- {text}" for text in traffic_tables.footnotes(versions))])))
    return {version.label: version.traffic for version in versions if version.traffic}


def show_another(chapter: str) -> dict[str, float]:
    """Show predicted and measured ratios of a chapter, how far all predictions are off, and the worst of all.

    One section for each machine that was predicted and measured since; a line that says so if there is none. Returns
    the newest machine's measured ratios of the chapter, by pair and variant: `coalescing wide`.
    """
    ratios: dict[str, float] = {}
    for _, predicted, pairs in second_gpu_page.predictions({}):
        if of_chapter := [pair for pair in pairs if pair.prediction.chapter == chapter]:
            display(Markdown(second_gpu_page.page(predicted, pairs, chapter).rstrip().replace("->", "→")))
            ratios = ratios or {" ".join(pair.cells()[:2]): pair.measured_ratio for pair in of_chapter}
    if not ratios:
        print("no machine that was predicted has been measured since")
    return ratios
