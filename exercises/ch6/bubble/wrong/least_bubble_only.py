"""A referee for schedules of a pipeline: is_honest(run) says whether a schedule and its figures may be published.

Yours: `is_honest`. The start compares the bubble with a formula that holds for some schedules only.
"""


def is_possible(rows, stages, micro_batches):
    if len(rows) != stages or any(len(row) != len(rows[0]) for row in rows):
        return False
    wanted = {(kind, i) for kind in "FB" for i in range(micro_batches)}
    when = [{part: step for step, part in enumerate(row) if part} for row in rows]
    for row, known in zip(rows, when, strict=True):
        if set(known) != wanted or len(row) - row.count(None) != len(wanted):
            return False
    for i in range(micro_batches):
        way = [known["F", i] for known in when] + [known["B", i] for known in reversed(when)]
        if way != sorted(set(way)):  # each step later than the one before
            return False
    return True


def most_held(row):
    now = most = 0
    for part in row:
        if part:
            now += 1 if part[0] == "F" else -1
        most = max(most, now)
    return most


def is_right(run, stages, micro_batches):
    rows, bubble, held = run(stages, micro_batches)
    if not is_possible(rows, stages, micro_batches):
        return False
    idle = sum(row.count(None) for row in rows) / sum(len(row) for row in rows)
    return (
        abs(bubble - idle) < 1e-6 and micro_batches * idle <= stages - 1 and held == max(most_held(row) for row in rows)
    )


def is_honest(run):
    return all(is_right(run, *each) for each in ((3, 7), (5, 2)))
