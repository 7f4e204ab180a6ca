"""A pair's machine code in a notebook, compiled for GPUs that need not be here."""

from collections.abc import Sequence
from dataclasses import replace

from IPython.display import Markdown

from common.notebook.cells import table
from common.pairs.pair import Pair
from common.xray.occupancy import MACHINES
from common.xray.picture import Picture, xray
from common.xray.sass import Anatomy
from common.xray.show import by_architecture, rows, skeleton, words


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
