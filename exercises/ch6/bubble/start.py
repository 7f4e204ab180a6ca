"""A referee for schedules of a pipeline: is_honest(run) says whether a schedule and its figures may be published.

Yours: `is_honest`. The start compares the bubble with a formula that holds for some schedules only.
"""


def is_honest(run):
    _, bubble, _ = run(2, 4)  # its rows, its bubble, what it holds
    return abs(bubble - (2 - 1) / (4 + 2 - 1)) < 1e-6
