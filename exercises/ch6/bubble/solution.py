"""A referee for schedules of a pipeline: the table is played through, and its figures are counted.

What each part is for:

    p and m                a fault of a stage in the middle needs 3 stages; 7 is no multiple of 3; and 2 is less than 5
    p rows, equally long   what is not in the table is not counted as idle
    every part once        no micro-batch is left out, and none is done twice in place of another
    F after F before       a stage needs the activations of the stage before, which an earlier step has computed
    B after B behind, F    gradients come from the stage after, and a stage needs its own activations
    idle over all steps    the bubble, whatever a formula says
    running F minus B      activations that have to be kept

Two schedules have the bubble (p - 1) / (m + p - 1), but not the same memory: with all forward parts first a stage holds
m micro-batches, with a backward part after each forward part (1F1B) at most p. So m can grow, and the bubble shrinks,
without more memory.
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
    return abs(bubble - idle) < 1e-6 and held == max(most_held(row) for row in rows)


def is_honest(run):
    return all(is_right(run, *each) for each in ((3, 7), (5, 2)))
