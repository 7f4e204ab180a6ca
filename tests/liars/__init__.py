"""Versions that lie about their speed, each beside an honest twin that does the same thing rightly.

A liar must be rejected for its own reason and show no ratio anywhere; its twin must be believed. The aim is honest
mistakes and clever shortcuts in ordinary Python, not an attacker who owns the process. The ways to lie, by number:
"""

WAYS = {
    # the clock: clock.py
    1: "returns before the work is done: a stream never joined, a thread still running",
    2: "returns something lazy that computes when looked at",
    3: "replaces the clock, or the waiting for the device",
    4: "compiles or tunes inside the timed region, or in one arm only",
    5: "replays a recording that holds only part of the work, or none",
    6: "reports a call shorter than the clock's floor as a time",
    # state: state.py
    7: "replays an earlier answer, found by identity, by place, or by content",
    8: "computes the answer in `setup`",
    9: "does its work while warming up and draws on it later",
    10: "changes its inputs",
    11: "returns a view of an input, or memory that nothing wrote",
    12: "changes global state that favours an arm",
    13: "finds a warm L2 where the other arm finds a cold one",
    14: "allocates in one arm and not in the other without saying so",
    # the answer: answer.py
    15: "answers zeros, a constant, or what does not depend on the input",
    16: "skips the tail or a part of the rows, or works only at round sizes",
    17: "computes in a lower precision than declared",
    18: "returns a shape or type that broadcasting forgives, NaN or inf where none belongs or wherever one looks",
    19: "solves another problem: fewer items, no backward pass, another function",
    20: "catches an exception and returns something else",
    # statistics: test_statistics.py
    21: "measures the arms one after the other while the clock drifts",
    22: "measures beside a busy neighbour, or with other thread counts",
    23: "deletes outliers, takes the best of many, clamps what is slow to 1.0",
    24: "reports a time below the physical limit",
}
