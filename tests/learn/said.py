"""A finding of a wrong answer from a line of words, so that tests read as what is shown."""

import re

from common.record.outcome import Cause, Finding

PLACE = re.compile(
    r"(?:rank (?P<rank>\d+): )?wrong answer at (?:size (?P<size>[^\s:,]+)|the timed size)(?: on (?P<draw>[^:]+?))?"
    r"(?P<filled>, with NaN in uninitialized memory)?: (?:(?P<path>\[\d+\]): )?(?P<what>.*)"
)
CAUSES = {
    Cause.WRONG_ELEMENT: r"element (?P<index>\d+) of (?P<of>\d+) is (?P<got>\S+), expected (?P<expected>\S+)",
    Cause.WRONG_SPECIAL: r"NaN or inf differ from the oracle's near element (?P<index>\d+) of (?P<of>\d+)",
    Cause.WRONG_RMS: r"relative RMS error (?P<error>\S+) in chunk (?P<chunk>\d+) of (?P<chunks>\d+), accepted "
    r"(?P<accepted>\S+): not (?P<precision>\w+), or partly wrong",
    Cause.WRONG_INTEGERS: r"(?P<wrong>\d+) of (?P<of>\d+) values differ",
    Cause.WRONG_SHAPE: r"shape (?P<shape>\[.*\]), expected (?P<expected>\[.*\])",
    Cause.OTHER_DTYPE: r"dtype (?P<dtype>\S+), the baseline's is (?P<expected>\S+)",
}


def finding(line):
    """None for a line that is about no wrong answer."""
    place = PLACE.fullmatch(line)
    if not place:
        return None
    facts = {key: value for key, value in place.groupdict().items() if value and key != "what"}
    facts["where"] = "size" if "size" in facts else "timed"
    for cause, pattern in CAUSES.items():
        if found := re.fullmatch(pattern, place["what"]):
            return Finding(cause, {key: number(value) for key, value in {**found.groupdict(), **facts}.items()})
    raise ValueError(line)


def number(text):
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if re.fullmatch(r"\d+", text) else value
