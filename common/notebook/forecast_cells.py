"""Predictions in a notebook: asked for before a result is shown, kept, and held against it in factors."""

import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from common.learn import forecast_score
from common.notebook import questions
from common.notebook.markup import FORECASTER
from common.pairs.pair import ROOT
from common.record.outcome import Verdict
from common.record.result import Row
from common.show import words
from common.show.formats import digits
from common.show.tables import ratio

NAIVE = ROOT / "notebooks/forecaster.toml"
WIDE = 1.2  # an interval whose ends are further apart than this factor holds many predictions
NEAR = 1.25  # a figure within this factor of another says the same, for an explanation
TIE = 1.02  # explanations that miss a figure by factors as near as this miss it alike
BYTES = re.compile(r"\bbytes\b(?! in flight|')")  # in the name of a term: it is a ratio of bytes


def predict(name: str, pair: str = "", again: Sequence[str] = (), **answers: Any) -> dict[str, Any]:
    """The reader's answers to a question, by name: a number, a range (low, high) or a word each. Of a range, the
    middle is returned.

    `name`: `ch1/coalescing`. `pair`: the chapter's pair that is asked about, if neither the question nor the answer is
    called so. What a reader first says of the pair as it is now is locked; other answers later are kept as revisions.
    `again`: earlier questions, `ch1/batch_size ratio`, that are asked anew here, at another size or of another machine.
    The reader is reminded of them.

    Raises NoPrediction while one of them is None. Where the environment variable SPEED_OF_LIGHT_FORECASTER is `naive`,
    notebooks/forecaster.toml answers instead, and says so. None of its answers is kept.
    """
    missing = [key for key, answer in answers.items() if answer is None]
    naive = tomllib.loads(NAIVE.read_text(encoding="utf-8")).get(name, {})
    is_naive = os.environ.get(FORECASTER) == "naive"
    for reminder in filter(None, map(questions.first_answer, () if is_naive else again)):
        print(f"asked before, {reminder}")
    if missing and is_naive:
        answers |= {key: naive[key] for key in missing}
        forecasts = ", ".join(f"{key} = {naive[key]}" for key in missing)
        print(f"No reader answered here. The naive forecaster says: {forecasts}")
    elif missing:
        way = f"replace None by your answer ({', '.join(missing)}), then run the cell and all below it."
        raise questions.NoPrediction(f"Your prediction first; until then the run stops: {way}")
    values = {key: questions.value(key, answer, naive.get(key)) for key, answer in answers.items()}
    for key in values.keys() - missing:
        values[key].asked = questions.question(name, key, pair, naive.get(key))
    questions.keep(values)
    return values


def _off(prediction: float, figure: float, is_count: bool = False) -> str:
    """How far a prediction is from what was found: `6% too high`; of a range, how far its nearest end is."""
    low, high = _ends(prediction)
    if low < high and low <= figure <= high:
        return "your range holds it"
    return forecast_score.off(low if figure < low else high, figure, is_count and float(figure).is_integer())


def _ends(prediction: Any) -> tuple[Any, Any]:
    return getattr(prediction, "ends", None) or (prediction, prediction)


def _answer_text(prediction: float | str, written: Any) -> str:
    low, high = map(written, _ends(prediction))
    revised = " (revised)" * getattr(prediction, "revised", False)
    return (f"{low} to {high}" if low != high else str(low)) + revised


def compared(prediction: float | str, figure: float | str, unit: str = "", how: str = "counted") -> str:
    """What was said and what was found. A word is right or it is not.

    `how`: whether the figure was counted, measured or computed. What was counted is right only if it is equal. Where a
    measurement is `unsure`, nothing is scored.
    """
    if figure == Verdict.UNSURE:
        return f"you said {prediction}: the measurement is unsure, so nothing is scored"
    questions.keep_figure(prediction, figure)
    if isinstance(prediction, str) or isinstance(figure, str):
        judged = "right" if prediction == figure else f"it is {figure}"
        return f"you said {_answer_text(prediction, str)}: {judged}"
    answer = _answer_text(prediction, "{:,.10g}".format)
    judged = _off(prediction, figure, is_count=how == "counted")
    return f"you said {answer} {unit}".rstrip() + f", {how} {figure:,.10g}: {judged}"


def against(prediction: float, row: Row, terms: Mapping[str, float] | None = None) -> str:
    """A predicted speedup and the measured one, as a factor; a figure that the interval and its margin hold is right.

    Where the interval is wide, the line says that it holds the figure and shows little.

    `terms`: what each explanation alone would give, `{"calls": 16.0, "bytes": 1.0}`. The answer then says which of them
    is nearest to the prediction, which to the measurement, and what none of them explains. The first that is called by
    bytes (not by bytes in flight) is kept with the figure: it is what one says who counts nothing but bytes.
    """
    answer = _answer_text(prediction, digits)
    if row.ratio is None or row.interval is None:
        return f"you said {answer}x; {words.word(row.verdict)}: {words.text(row.reason)}"
    if row.verdict == Verdict.UNSURE:
        return f"you said {answer}x, measured {ratio(row)}: nothing is scored, because the measurement is unsure"
    counted = next((term for name, term in (terms or {}).items() if BYTES.search(name)), None)
    questions.keep_figure(prediction, row.ratio, interval=row.interval, bytes=counted)
    low, high = _ends(prediction)
    judged = _off(prediction, row.ratio)
    if forecast_score.misses(low, high, row.ratio, row.interval) == 1.0:
        if row.interval[1] / row.interval[0] > WIDE:
            judged = "within the interval, which is wide: it says little"
        elif not low <= row.ratio <= high:
            judged = "your range meets the interval" if low < high else "right"
    text = f"you said {answer}x, measured {ratio(row)}: {judged}"
    return "\n".join([text, *([_nearest_explanation(prediction, row.ratio, terms)] if terms else [])])


def _nearest_explanation(prediction: float, measured: float, terms: Mapping[str, float]) -> str:
    def nearest(value: float) -> list[str]:
        """The nearest explanation, and others that miss by the same."""
        misses = {name: abs(math.log(terms[name] / value)) for name in terms}
        least = min(misses.values()) + math.log(TIE)
        return sorted((name for name in terms if misses[name] <= least), key=misses.__getitem__)

    def listed(names: list[str]) -> str:
        text = " and ".join(f"{name} ({digits(terms[name])}x)" for name in names)
        return text + ", which miss it alike" * (len(names) > 1)

    yours, found = nearest(prediction), nearest(measured)
    best = terms[found[0]]
    left = measured / best
    text = f"nearest to the measured speedup: {listed(found)}"
    text += f"; nearest to yours: {listed(yours)}" * (yours != found)
    gives = f"The nearest explanation gives {digits(best)}x"
    if left > NEAR:
        return f"{text}\n{gives}; a factor of {digits(left)} is still missing."
    return f"{text}\n{gives}, {digits(1 / left)} times too much." if left < 1 / NEAR else text
