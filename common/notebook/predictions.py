"""Predictions in a notebook: asked for before a result is shown, and held against it in factors."""

import math
import os
import tomllib
from collections.abc import Mapping
from typing import Any

from common.learn.scores import off
from common.pairs.pair import ROOT
from common.record.result import Row
from common.record.stats import MARGIN
from common.show.formats import digits
from common.show.tables import ratio

FORECASTER = "SPEED_OF_LIGHT_FORECASTER"  # `naive`: somebody runs a notebook for its outputs, and answers nothing
NAIVE = ROOT / "notebooks/forecaster.toml"
WIDE = 1.2  # an interval whose ends are further apart than this factor holds many predictions
NEAR = 1.25  # a figure within this factor of another says the same, for an explanation


class NoPrediction(Exception):
    """An answer is missing: it ends a run at its cell with one line in place of a traceback."""

    def _render_traceback_(self) -> list[str]:  # what IPython shows of an error
        return [str(self)]


def predict(name: str, **answers: Any) -> dict[str, Any]:
    """The reader's answers to a question, by name. `name`: `ch1/coalescing`.

    Raises NoPrediction while one of them is None. Where the environment variable SPEED_OF_LIGHT_FORECASTER is `naive`,
    notebooks/forecaster.toml answers instead, and says so.
    """
    missing = [key for key, answer in answers.items() if answer is None]
    if missing and os.environ.get(FORECASTER) == "naive":
        naive = tomllib.loads(NAIVE.read_text(encoding="utf-8"))[name]
        answers |= {key: naive[key] for key in missing}
        said = ", ".join(f"{key} = {naive[key]}" for key in missing)
        print(f"No reader answered here. The naive forecaster says: {said}")
    elif missing:
        raise NoPrediction(f"Your prediction first: in this cell, replace None by your answer ({', '.join(missing)}).")
    return answers


def compared(said: float | str, found: float | str, unit: str = "") -> str:
    """What was said and what was counted. A word is right or it is not."""
    if isinstance(said, str) or isinstance(found, str):
        return f"you said {said}: " + ("right" if said == found else f"it is {found}")
    return f"you said {said:,.10g} {unit}".rstrip() + f", counted {found:,.10g}: {off(said, found)}"


def against(said: float, row: Row, terms: Mapping[str, float] | None = None) -> str:
    """A predicted ratio and the measured one, as a factor; a figure that the interval and its margin hold is right.

    Where the interval is wide, the line says that it holds the figure and shows little.

    `terms`: what each explanation alone would give, `{"calls": 16.0, "bytes": 1.0}`. The answer then says which of them
    is nearest to the prediction, which to the measurement, and what none of them explains.
    """
    if row.ratio is None or row.interval is None:
        return f"you said {digits(said)}x; {row.verdict}: {row.reason}"
    low, high = row.interval[0] / (1 + MARGIN), row.interval[1] * (1 + MARGIN)
    judged = off(said, row.ratio)
    if low <= said <= high:
        wide = row.interval[1] / row.interval[0] > WIDE
        judged = "within the interval, which is wide: it says little" if wide else "right"
    text = f"you said {digits(said)}x, measured {ratio(row)}: {judged}"
    return "\n".join([text, *([_missed(said, row.ratio, terms)] if terms else [])])


def _missed(said: float, measured: float, terms: Mapping[str, float]) -> str:
    def nearest(value: float) -> str:
        return min(terms, key=lambda name: abs(math.log(terms[name] / value)))

    yours, best = nearest(said), nearest(measured)
    left = measured / terms[best]
    parts = [f"nearest to the measured ratio: {best} ({digits(terms[best])}x)"]
    if yours != best:
        parts.append(f"nearest to yours: {yours} ({digits(terms[yours])}x)")
    text = "; ".join(parts)
    gives = f"The nearest explanation gives {digits(terms[best])}x"
    if left > NEAR:
        return f"{text}\n{gives}; a factor of {digits(left)} is still missing."
    return f"{text}\n{gives}, {digits(1 / left)} times too much." if left < 1 / NEAR else text
