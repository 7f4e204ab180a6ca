"""recorded/<device>/predicted.md: the ratios predicted for a second machine beside those measured there afterwards."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.record import files, result, store
from common.show.formats import digits
from common.show.tables import head, line, variant
from common.show.tables import ratio as ratio_of

Key = tuple[str, str, str, str]  # chapter, name, variant, versus
SCHEMA = 1
FILE = "predicted.json"
WORST = 5
HEADINGS = ("pair", "variant", "{first}", "predicted", "measured", "predicted / measured", "explained", "times off")
EXPLAINED = """*Explained* and *times off* have two figures, `a -> b`: `a` for the version that the variant is compared
with (the baseline, if no other is named), `b` for the variant. *Explained* is a time computed from counts for the
{first}, over the time recorded there. The counts are bytes, sectors, FLOPs, copies between CPU and GPU, and launches
with a fixed time each. A version that could not be counted has the bytes, FLOPs and copies that its pair declares, and
no launches. This share of the recorded time changes as the computed time does; the rest stays. Above 100 % the computed
time is too long (the kernels of a graph, for example, are counted as calls), and no rest is left. *Times off* is the
time measured on the {name} over the time predicted."""
INTRODUCTION = """# {name}: predicted, then measured

Predicted on {date}, when commit {commit} was the newest, from the record of {first}, the traffic counts and the two
datasheets: [how](/tools/second_gpu.py). All that is compared here was measured later.

{explained}"""


@dataclass(frozen=True)
class Row:
    """A ratio recorded on the first machine, and predicted for the second; seconds of both arms there."""

    chapter: str
    name: str
    variant: str
    versus: str
    source_hash: str
    clock: str
    recorded: float
    predicted: float
    seconds: dict[str, float]  # variant, versus -> predicted
    by: dict[str, str]  # variant, versus -> what most of the second machine's least time is
    explained: dict[str, float]  # variant, versus -> least time / recorded time on the first machine


@dataclass(frozen=True)
class Predicted:
    """All rows. `environment`: device (name), machine (the first one's name), date and commit."""

    schema: int
    environment: dict[str, Any]
    rows: list[Row]


FORMAT = files.Format("predictions", SCHEMA, Predicted)


@dataclass(frozen=True)
class Compared:
    """A predicted row, and the row that was measured. `seconds`: variant, versus -> measured."""

    row: Row
    found: result.Row
    seconds: dict[str, float]

    @property
    def measured(self) -> float:
        return self.found.ratio or math.nan

    @property
    def factor(self) -> float:
        return self.row.predicted / self.measured

    @property
    def unmoved(self) -> float:
        """The same for the first machine's ratio, taken as the prediction."""
        return self.row.recorded / self.measured

    def cells(self) -> list[str]:
        row = self.row
        shares = " -> ".join(f"{row.explained[which]:.0%}" for which in ("versus", "variant"))
        off = " -> ".join(f"{self.seconds[which] / row.seconds[which]:.2f}" for which in ("versus", "variant"))
        ratios = [f"{digits(ratio)}x" for ratio in (row.recorded, row.predicted)]
        return [row.name, variant(self.found), *ratios, ratio_of(self.found), f"{self.factor:.2f}", shares, off]


def compared(found: Predicted, folder: Path) -> list[Compared]:
    """The predicted rows that were measured later: on the same code, or on code that a record was carried to."""
    measured, carried = dict[Key, tuple[str, result.Row, dict[str, float]]](), dict[str, list[str]]()
    for chapter in dict.fromkeys(row.chapter for row in found.rows):
        for path, record in reversed(store.chapter_records(chapter, problems={})):
            is_later = path.parent == folder and record.environment["date"] > found.environment["date"]
            for pair in record.pairs:
                carried.setdefault(pair.source_hash, []).extend(pair.carried)
                if is_later and pair.size == "default":
                    measured |= _ratios(pair)
    pairs = [(row, measured.get((row.chapter, row.name, row.variant, row.versus))) for row in found.rows]
    return [Compared(row, *at[1:]) for row, at in pairs if at and row.source_hash in (at[0], *carried[at[0]])]


def _ratios(pair: result.PairResult) -> dict[Key, tuple[str, result.Row, dict[str, float]]]:
    """The rows of a result that have a ratio, each with the hash of its code and the seconds of both versions."""
    found = {}
    for row in pair.rows:
        if row.ratio is not None:
            seconds = {"variant": pair.arms[row.variant].median_s, "versus": pair.arms[row.versus].median_s}
            found[pair.chapter, pair.name, row.variant, row.versus] = (pair.source_hash, row, seconds)
    return found


def spread(factors: Sequence[float]) -> str:
    """How far predictions are off, in factors: 2 and 1/2 are equally far."""
    off = np.exp(np.abs(np.log(factors)))
    half, most = np.quantile(off, (0.5, 0.9), method="inverted_cdf")  # of the predictions themselves: none between two
    return f"half of them within {half - 1:.0%}, nine in ten within {most - 1:.0%}, the worst off by {max(off):.2f}x"


def worst(found: Sequence[Compared]) -> list[Compared]:
    return sorted(found, key=lambda each: -abs(np.log(each.factor)))[:WORST]


def summary(predicted: Predicted, found: Sequence[Compared]) -> list[str]:
    """Lines of Markdown: how good the prediction is, and how good the first machine's ratio alone would have been."""
    first = predicted.environment["machine"]
    moved = [each for each in found if abs(np.log(each.row.predicted / each.row.recorded)) > np.log(1.05)]
    lines = [f"{len(found)} of {len(predicted.rows)} predicted ratios have been measured there."]
    far = f"those where the prediction differs by more than 5 % from the ratio on the {first}"
    for which, some in (("all", found), (far, moved)):
        if some:
            lines.append(f"- {which} ({len(some)}): {spread([each.factor for each in some])}")
            lines.append(f"  - if one takes the {first}'s ratio and no rule: {spread([each.unmoved for each in some])}")
    return lines


def table(predicted: Predicted, found: Sequence[Compared]) -> list[str]:
    heads = [heading.format(first=predicted.environment["machine"]) for heading in HEADINGS]
    return [*head(heads), *(line(each.cells()) for each in found)]


def predictions(problems: files.Problems | None = None) -> list[tuple[Path, Predicted, list[Compared]]]:
    """(Its file, a prediction, its rows that were measured) for each machine that was predicted, newest first."""
    found = FORMAT.recorded(FILE, problems=problems)
    return [(path, predicted, compared(predicted, path.parent)) for path, predicted in found]


def pages(problems: files.Problems | None = None) -> dict[Path, str]:
    """The pages by path. Bad files are noted in `problems`; without it they raise RecordError."""
    return {path.with_suffix(".md"): _page(said, found) for path, said, found in predictions(problems) if found}


def _page(predicted: Predicted, found: list[Compared]) -> str:
    said, first = predicted.environment, predicted.environment["machine"]
    name, date, commit = said["device"]["name"], said["date"][:10], said["commit"][:12]
    explained = EXPLAINED.format(first=first, name=name)
    text = INTRODUCTION.format(name=name, first=first, date=date, commit=commit, explained=explained)
    parts = [text, "\n".join(summary(predicted, found))]
    parts.append("\n".join([f"## The {WORST} worst", "", *table(predicted, worst(found))]))
    for chapter in dict.fromkeys(each.row.chapter for each in found):
        mine = [each for each in found if each.row.chapter == chapter]
        parts.append("\n".join([f"## {chapter}", "", *table(predicted, mine)]))
    return "\n\n".join(parts) + "\n"
