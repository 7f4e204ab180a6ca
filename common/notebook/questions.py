"""A reader's answers in a notebook know their questions. Answers and figures are kept where those of exercises are.

The store is work/progress.jsonl. If it cannot be read or written, one line says so, and the cell goes on.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from common.learn import forecast_score, learner_log
from common.pairs.pair import ROOT, Pair, discover
from common.pairs.source import source_hash
from common.pairs.user_error import UserError
from common.record.files import RecordError
from common.show.formats import digits


class NoPrediction(UserError):
    """An answer is missing, or is none: it ends a run at its cell."""


@dataclass(frozen=True)
class Question:
    """`of`: `ch1/coalescing ratio`. `hash`: of the pair that it is about. `naive`: what the naive forecaster says."""

    of: str
    pair: str  # `ch1/coalescing`; empty if it is about none
    hash: str | None
    naive: Any


class _Prediction:
    """`ends`: of a range, whose middle the number is. `asked`: None if the naive forecaster answered.

    `revised`: another answer was given before it.
    """

    asked: Question | None = None
    revised: bool = False
    ends: tuple[float, float] | None = None


class Whole(_Prediction, int):
    """A whole number that was predicted. Cells compute with it as with any other."""


class Number(_Prediction, float):
    """As Whole, with a fraction."""


class Word(_Prediction, str):
    """A word that was predicted, or True or False as words: nothing can inherit from bool."""


Answer = Whole | Number | Word


def value(key: str, answer: Any, like: Any = None) -> Answer:
    """An answer that can carry its question. Of a range, the middle on a logarithmic scale.

    `like`: another answer to the question, which tells whether a word or a number is asked for. Raises NoPrediction.
    """
    is_word = isinstance(answer if like is None else like, bool | str)
    if is_word and isinstance(answer, bool | str | Real):
        return Word(answer)
    if not is_word and (single := forecast_score.number(answer)) is not None:
        return Whole(answer) if isinstance(answer, Integral) else Number(single)
    ends = None if is_word else forecast_score.ends(answer)
    if ends is None:
        asked = "a word" if is_word else "a number, or a range (low, high) of numbers above 0"
        raise NoPrediction(f"{key} = {answer!r}: write {asked}.")
    middle = math.sqrt(ends[0] * ends[1])
    made = Whole(round(middle)) if all(isinstance(end, Integral) for end in answer) else Number(middle)
    made.ends = ends
    return made


def question(name: str, key: str, pair: str, naive: Any) -> Question:
    """What an answer is to. The pair is the one of this name, or called as the answer or as the question."""
    about = _pair(name, [pair] if pair else [key, name.partition("/")[2]])
    if about is None:
        return Question(f"{name} {key}", "", None, naive)
    return Question(f"{name} {key}", f"{about.chapter}/{about.name}", source_hash(about), naive)


def _pair(name: str, called: list[str]) -> Pair | None:
    folder = ROOT / re.match(r"ch\d+|", name)[0]  # type: ignore[index]  # it matches: `ch4b/causal` is of ch4
    names = [word for word in called if (folder / f"baseline_{word}.py").exists()]
    return discover(folder, names[0])[0] if names else None


def keep(answers: Mapping[str, Answer]) -> None:
    """The first answer is locked, later ones are revisions. A cell that is run again says nothing new."""
    try:
        for key, answer in answers.items():
            if answer.asked:
                _keep(key, answer, answer.asked)
    except RecordError as error:
        print(f"your answers are not kept: {error}")


def _keep(key: str, answer: Answer, asked: Question) -> None:
    record: dict[str, Any] = {"said": answer, "range": answer.ends and [*answer.ends]}
    earlier = _predictions_for(asked)
    is_again = bool(earlier) and all(earlier[-1].get(name) == new for name, new in record.items())
    answer.revised = len(earlier) > is_again
    if is_again:
        return
    learner_log.add("predict", asked.of, hash=asked.hash, pair=asked.pair, **record)
    if earlier:
        print(f"{key}: your first answer is locked; this one is kept as a revision")


def _predictions_for(asked: Question) -> list[dict[str, Any]]:
    """All predictions for one question. Raises RecordError."""
    return [
        prediction
        for prediction in learner_log.predictions()
        if (prediction["of"], prediction.get("hash")) == (asked.of, asked.hash)
    ]


def first_answer(of: str) -> str:
    """What was first said to a question, and what it was; empty if nothing was said, or the store cannot be read."""
    try:
        made = (prediction for prediction in learner_log.predictions() if prediction["of"] == of)
        earlier = next((prediction for prediction in made if "said" in prediction or prediction.get("range")), None)
    except RecordError:  # `keep` tells it
        return ""
    if earlier is None:
        return ""
    answer = " to ".join(map(_answer_text, earlier.get("range") or [earlier["said"]]))
    return f"{of}: you said {answer}" + (f", it was {_answer_text(earlier['found'])}" if "found" in earlier else "")


def _answer_text(value: float | str) -> str:
    return value if isinstance(value, str) else digits(value)


def keep_figure(prediction: Any, figure: float | str, **beside: Any) -> None:
    """Keeps the figure of a prediction that has none yet, with what stands beside it."""
    asked: Question | None = getattr(prediction, "asked", None)
    if asked is None:
        return
    try:
        if any("found" not in entry for entry in _predictions_for(asked)):
            kept = figure if isinstance(figure, str) else float(figure)
            learner_log.add("found", asked.of, hash=asked.hash, found=kept, naive=asked.naive, **beside)
    except RecordError as error:
        print(f"this figure is not kept: {error}")
