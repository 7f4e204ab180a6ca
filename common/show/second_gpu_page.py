"""recorded/<device>/predicted.md: the ratios predicted for a second machine beside those measured there afterwards."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.record import files, result, store
from common.show import tables
from common.show.formats import digits
from common.show.layout import markdown_table
from common.show.pages import page as make_page

Key = tuple[str, str, str, str]  # chapter, name, variant, versus
SCHEMA = 1
FILE = "predicted.json"
WORST = 5
FAR = "those where the prediction differs by more than 5 % from the ratio on the {first}"
HEADINGS = ("pair", "variant", "{first}", "predicted", "measured", "predicted / measured", "explained", "times off")


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
class PredictedRows:
    """All rows. `environment`: device (name), machine (the first one's name), date and commit."""

    schema: int
    environment: dict[str, Any]
    rows: list[Row]


FORMAT = files.Format("predictions", SCHEMA, PredictedRows)


@dataclass(frozen=True)
class ComparedRow:
    """A predicted row, and the row that was measured. `seconds`: variant, versus -> measured."""

    prediction: Row
    measured: result.Row
    seconds: dict[str, float]

    @property
    def measured_ratio(self) -> float:
        return self.measured.ratio or math.nan

    @property
    def factor(self) -> float:
        return self.prediction.predicted / self.measured_ratio

    @property
    def unmoved(self) -> float:
        """The same for the first machine's ratio, taken as the prediction."""
        return self.prediction.recorded / self.measured_ratio

    def cells(self) -> list[str]:
        row = self.prediction
        shares = " -> ".join(f"{row.explained[which]:.0%}" for which in ("versus", "variant"))
        off = " -> ".join(f"{self.seconds[which] / row.seconds[which]:.2f}" for which in ("versus", "variant"))
        ratios = [*(f"{digits(ratio)}x" for ratio in (row.recorded, row.predicted)), tables.ratio(self.measured)]
        return [row.name, tables.variant(self.measured), *ratios, f"{self.factor:.2f}", shares, off]


def compare_rows(predicted: PredictedRows, folder: Path) -> list[ComparedRow]:
    """The predicted rows that were measured later: on the same code, or on code that a record was carried to."""
    measured_rows, carried = dict[Key, tuple[str, result.Row, dict[str, float]]](), dict[str, list[str]]()
    for chapter in dict.fromkeys(row.chapter for row in predicted.rows):
        for path, record in reversed(store.chapter_records(chapter, problems={})):
            is_later = path.parent == folder and record.environment["date"] > predicted.environment["date"]
            for pair in record.pairs:
                carried.setdefault(pair.source_hash, []).extend(pair.carried)
                if is_later and pair.size == "default":
                    measured_rows |= _ratios(pair)
    pairs = [(row, measured_rows.get((row.chapter, row.name, row.variant, row.versus))) for row in predicted.rows]
    hashes = {code: (code, *earlier) for code, earlier in carried.items()}
    return [ComparedRow(row, *match[1:]) for row, match in pairs if match and row.source_hash in hashes[match[0]]]


def _ratios(pair: result.PairResult) -> dict[Key, tuple[str, result.Row, dict[str, float]]]:
    """The rows of a result that have a ratio, each with the hash of its code and the seconds of both versions."""
    ratios = {}
    for row in pair.rows:
        if row.ratio is not None:
            seconds = {"variant": pair.arms[row.variant].median_s, "versus": pair.arms[row.versus].median_s}
            ratios[pair.chapter, pair.name, row.variant, row.versus] = (pair.source_hash, row, seconds)
    return ratios


def spread(factors: Sequence[float]) -> str:
    """How far predictions are off, in factors: 2 and 1/2 are equally far."""
    off = np.exp(np.abs(np.log(factors)))
    half, most = np.quantile(off, (0.5, 0.9), method="inverted_cdf")  # of the predictions themselves: none between two
    return f"half of them within {half - 1:.0%}, nine in ten within {most - 1:.0%}, the worst off by {max(off):.2f}x"


def predictions(problems: files.Problems | None = None) -> list[tuple[Path, PredictedRows, list[ComparedRow]]]:
    """(Its file, a prediction, its rows that were measured) for each machine that was predicted, newest first."""
    recorded = FORMAT.load_all(FILE, problems=problems)
    return [(path, predicted, compare_rows(predicted, path.parent)) for path, predicted in recorded]


def pages(problems: files.Problems | None = None) -> dict[Path, str]:
    """The pages by path. Bad files are noted in `problems`; without it they raise RecordError."""
    return {path.with_suffix(".md"): page(predicted, rows) for path, predicted, rows in predictions(problems) if rows}


def page(predicted: PredictedRows, rows: Sequence[ComparedRow], chapter: str = "") -> str:
    """How good the prediction is, and how good the first machine's ratio alone would have been; every chapter's rows.

    `chapter`: for its notebook, with the rows of this one only.
    """
    first = predicted.environment["machine"]
    moved = [row for row in rows if abs(np.log(row.prediction.predicted / row.prediction.recorded)) > np.log(1.05)]
    by_chapter: dict[str, list[list[str]]] = {}
    for row in rows:
        by_chapter.setdefault(row.prediction.chapter, []).append(row.cells())
    headings = [heading.format(first=first) for heading in HEADINGS]
    worst = sorted(rows, key=lambda row: -abs(np.log(row.factor)))[:WORST]
    return make_page(
        "common/show/templates/predicted.md.jinja",
        chapter=chapter,
        predicted=predicted,
        rows=rows,
        groups=[("all", rows), (FAR.format(first=first), moved)],
        spread=spread,
        WORST=WORST,
        worst=markdown_table(headings, [row.cells() for row in worst]),
        tables={name: markdown_table(headings, cells) for name, cells in by_chapter.items()},
    )
