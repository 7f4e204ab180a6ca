"""A referee for schedules of a pipeline: is_honest(run) says whether a schedule and its figures may be published.

Yours: `is_honest`. The start compares the bubble with a formula that holds for some schedules only.
"""


def is_honest(run):
    for stages, micro_batches in ((2, 4), (3, 7)):
        bubble = run(stages, micro_batches)[1]
        if abs(bubble - (stages - 1) / (micro_batches + stages - 1)) > 1e-6:
            return False
    return True
