"""The section "When your pair is refused" of CONTRIBUTING.md: messages and what to write, then what is out of scope."""

import re

from common.record.outcome import Cause
from common.show.pages import page
from common.show.ways_out import OF_BASELINE, OF_DRAW, OF_NARROW, OF_OFFSETS, WAYS_OUT
from common.show.words import WORDS


def markdown() -> str:
    by_facts = {
        "wrong answer ... on *a stress draw*": OF_DRAW,
        "... its offsets overflow 32 bits": OF_OFFSETS,
        "the baseline: wrong answer": OF_BASELINE,
        "wrong answer, where `TOLERANCE` is narrow": OF_NARROW,
    }
    by_cause = {_pattern(cause): way for cause, way in WAYS_OUT.items()}
    rows = [*by_facts.items(), *by_cause.items()]
    return page("tools/templates/refusals.md.jinja", rows=rows).strip()


def _pattern(cause: Cause) -> str:
    """A cause in words, without its facts."""
    text = re.sub(r"\{.*?\}", "...", WORDS[cause].replace("|", "")).strip(" :")
    return text if text.strip(".") else str(cause)
