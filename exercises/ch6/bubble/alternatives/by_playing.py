"""A referee for schedules of a pipeline: is_honest(run) says whether a schedule and its figures may be published.

Yours: `is_honest`. The start compares the bubble with a formula that holds for some schedules only.
"""


def is_honest(run):
    for stages in (1, 2, 3, 5):
        for micro_batches in (1, 2, 4, 7):
            if not plays(*run(stages, micro_batches), stages, micro_batches):
                return False
    return True


def plays(rows, bubble, held, stages, micro_batches):
    if len({len(row) for row in rows}) != 1 or len(rows) != stages:
        return False
    done, most, idle = [[] for _ in rows], 0, 0
    for column in zip(*rows, strict=True):
        before = [list(each) for each in done]
        for stage, part in enumerate(column):
            if part is None:
                idle += 1
                continue
            kind, i = part
            needs = [(stage - 1, ("F", i))] if kind == "F" else [(stage + 1, ("B", i)), (stage, ("F", i))]
            if part in before[stage] or any(0 <= s < stages and p not in before[s] for s, p in needs):
                return False
            done[stage].append(part)
            most = max(most, sum(1 if kind == "F" else -1 for kind, _ in done[stage]))
    complete = all(len(each) == 2 * micro_batches for each in done)
    complete = complete and all(0 <= i < micro_batches for each in done for _, i in each)
    return complete and held == most and abs(bubble - idle / (stages * len(rows[0]))) < 1e-6
