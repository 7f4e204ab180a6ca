"""What the chapters' notebooks share: diffs, counts, machine code, results in tables, a guess beside them."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from IPython.display import Markdown, display
from matplotlib.figure import Figure
from torch.overrides import TorchFunctionMode

from common.engine.runner import run_pairs
from common.machine.device import has_gpu
from common.pairs.pair import ROOT, Pair, Version, discover, load
from common.pairs.sizes import class_of
from common.pairs.source import source_hash
from common.record.archive import recorded, recorded_sizes, together
from common.record.result import PairResult, Record, Row
from common.record.stats import MARGIN
from common.show import plot
from common.show.report import origin, ratio, share, times, variant
from common.xray.occupancy import MACHINES
from common.xray.picture import Picture, xray
from common.xray.show import by_architecture, skeleton, words
from common.xray.show import rows as facts_by_version


def table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> Markdown:
    head, *body = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (headings, *rows)]
    return Markdown("\n".join([head, "|" + " --- |" * len(headings), *body]))


def show_diff(pair: Pair, label: str = "optimized") -> Markdown:
    """What distinguishes a variant from its baseline, docstrings aside: the lesson."""
    old, new = pair.baseline.path, next(version.path for version in pair.variants if version.label == label)
    code = [path.read_text(encoding="utf-8").split('"""', 2)[2].splitlines() for path in (old, new)]
    diff = difflib.unified_diff(code[0], code[1], old.name, new.name, n=2, lineterm="")
    return Markdown("\n".join(["```diff", *diff, "```"]))


def ready(version: Version, size: dict[str, Any], device: str = "cpu") -> Callable[[], Any]:
    """One call of a version, set up in this process; on the device "meta" it has shapes and no values."""
    module = load(version.path)
    inputs = module.inputs(**size, device=device)
    return partial(module.run, **inputs, **(module.setup(**inputs) if hasattr(module, "setup") else {}))


class CountCalls(TorchFunctionMode):
    """While active, counts in `calls` how often torch is asked for what."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func.__name__] += 1
        return func(*args, **(kwargs or {}))


def recorded_on_gpu(chapter: str, size: str = "default") -> Record | None:
    """The newest GPU's record of a chapter at a size (`large/8192x8192`) or a class of sizes (`large`).

    Without the pairs that have changed since; None if there is no record.
    """
    records = [record for _, record in recorded(chapter, class_of(size))]
    found = together([record for record in records if record.environment["device"]["kind"] == "cuda"])
    return found and _only(found, chapter, lambda pair: size in (pair.size, class_of(pair.size)))


def _only(record: Record, chapter: str, wanted: Callable[[PairResult], bool]) -> Record:
    """What is wanted of a record, and has not changed since."""
    hashes = {pair.name: source_hash(pair) for pair in discover(ROOT / chapter)}
    current = [pair for pair in record.pairs if hashes.get(pair.name) == pair.source_hash]
    return replace(record, pairs=[pair for pair in current if wanted(pair)])


def here_or_recorded(chapter: str, names: Sequence[str], size: str = "default") -> Record | None:
    """These pairs, in this order: measured now where there is a GPU, else as a GPU's record has them, if there is one.

    `size`: one, or a class of them. A pair that has changed since it was recorded, or has no such size, is left out.
    """
    record = run_pairs(_pairs(chapter, names), size, fast=True) if has_gpu() else recorded_on_gpu(chapter, size)
    return record and replace(record, pairs=[pair for name in names for pair in record.pairs if pair.name == name])


def reveal(chapter: str, names: Sequence[str], size: str = "default") -> dict[str, PairResult]:
    """Shows what `here_or_recorded` finds of these pairs, says what is missing; returns what has a ratio.

    By the pair's name; where `size` is a class, by its name and size: `add large/8192x8192`.
    """
    record = here_or_recorded(chapter, names, size)
    pairs = record.pairs if record else []
    if record and pairs:
        display(Markdown("**Measured here**" if has_gpu() else "**Recorded, not measured here**"), show(record))
    if missing := [name for name in names if name not in {pair.name for pair in pairs}]:
        at_size = "" if size == "default" else f" at size {size}"
        why = "there is no GPU here, and nothing is recorded of it as it is now"
        print(f"no figures of {', '.join(missing)}{at_size}: {'it has no such size' if has_gpu() else why}")
    believed = [pair for pair in pairs if any(row.ratio for row in pair.rows)]
    is_class = size != "default" and "/" not in size
    return {f"{pair.name} {pair.size}" if is_class else pair.name: pair for pair in believed}


def sweep(chapter: str, name: str) -> Figure | None:
    """A pair over all its sizes as a GPU's records have them; None if nothing is recorded of it as it is now.

    As by `benchmark.py --size all --plot`: ratio over size; where memory is the limit, also bandwidth over bytes.
    """
    found = [_only(record, chapter, lambda pair: pair.name == name) for _, record in recorded_sizes(chapter)]
    records = [record for record in found if record.pairs]
    return plot.sweep(*records) if records else None


def _pairs(chapter: str, names: Sequence[str]) -> list[Pair]:
    return [pair for name in names for pair in discover(ROOT / chapter, name)]


def show_xray(pair: Pair, archs: Sequence[str] = ("sm_90",), labels: Sequence[str] | None = None) -> Markdown:
    """A pair's kernels as machine code, a table for each architecture, and what differs in words.

    `labels`: the variants to compare with the baseline, by their labels; None for all.
    """
    lines = []
    for architecture, pictures in by_architecture(_pictures(pair, archs, labels)).items():
        heading, *body = facts_by_version(pictures)
        lines += [f"**{pair.name}**, compiled for {architecture} ({MACHINES[architecture].name})", ""]
        lines += [table(heading, body).data, ""] if body else []
        lines += [*(f"- {line}" for line in words(pictures)), ""]
    return Markdown("\n".join(lines))


def show_code(pair: Pair, label: str = "optimized", arch: str = "sm_90") -> Markdown:
    """What X-ray counts of a version's machine code, instruction by instruction, with what each one does."""
    picture = next(one for one in _pictures(pair, (arch,), [label]) if one.label == label)
    lines = [line for kernel in picture.kernels for line in [f"{kernel.kernel}, {arch}", *skeleton(kernel)]]
    return Markdown("\n".join(["```", *(lines or [f"{label}: {picture.reason}"]), "```"]))


def _pictures(pair: Pair, archs: Sequence[str], labels: Sequence[str] | None) -> list[Picture]:
    variants = tuple(version for version in pair.variants if labels is None or version.label in labels)
    return xray(replace(pair, variants=variants), archs)


def show(record: Record) -> Markdown:
    """A record's rows under their origin (with sizes but for the default), then what a reader must know beside them."""
    rows, remarks = [], []
    sized = any(class_of(pair.size) != "default" for pair in record.pairs)
    for pair in record.pairs:
        name = [pair.name, pair.size] if sized else [pair.name]
        for row in pair.rows:
            rows.append([*name, variant(row), f"**{row.verdict}**", ratio(row), times(pair, row), share(pair, row)])
            remarks += [f"- {' '.join(name)}, {variant(row)}: {text}" for text in (row.reason, *row.notes) if text]
    headings = ["pair", *["size"] * sized, "variant", "verdict", "ratio [95 % interval]", "time"]
    headings += ["of measured limit / datasheet"]
    return Markdown("\n".join([f"*{origin(record)}*", "", table(headings, rows).data, "", *remarks]))


def against(guess: float, row: Row) -> str:
    """A guessed ratio beside the measured one."""
    if row.interval is None:
        return f"you guessed {guess:g}x; {row.verdict}: {row.reason}"
    low, high = row.interval[0] / (1 + MARGIN), row.interval[1] * (1 + MARGIN)
    side = "too low" if guess < low else "too high" if guess > high else "right"
    return f"you guessed {guess:g}x; measured {ratio(row)}: {side}"
