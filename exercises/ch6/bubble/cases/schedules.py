"""Schedules of a pipeline, as tables: what the cases are made of."""


def play(orders):
    """Rows in which each stage does its next part as soon as what this needs was done in an earlier step."""
    rows, done, left = [[] for _ in orders], [set() for _ in orders], [list(order) for order in orders]
    while any(left):
        for stage, (row, order) in enumerate(zip(rows, left, strict=True)):
            row.append(order.pop(0) if order and may(order[0], stage, done) else None)
        for row, known in zip(rows, done, strict=True):
            known.add(row[-1])
    return rows


def may(part, stage, done):
    """What a part needs: the forward part of the stage before, or the backward part of the stage after."""
    kind, number = part
    if kind == "F":
        return stage == 0 or part in done[stage - 1]
    return ("F", number) in done[stage] and (stage == len(done) - 1 or part in done[stage + 1])


def all_forward_first(stages, micro_batches):
    """GPipe: every forward part, then every backward part."""
    return [[(kind, i) for kind in "FB" for i in range(micro_batches)] for _ in range(stages)]


def one_forward_one_backward(stages, micro_batches):
    """1F1B: stage s begins with p - s forward parts; from then on a backward part follows each forward part."""
    orders = []
    for stage in range(stages):
        ahead = min(stages - stage, micro_batches)
        order = [("F", i) for i in range(ahead)]
        for i in range(micro_batches):
            order += [("B", i)] + [("F", ahead + i)] * (ahead + i < micro_batches)
        orders.append(order)
    return orders


def bubble(rows):
    return sum(part is None for row in rows for part in row) / sum(map(len, rows))


def held(rows):
    """The most micro-batches of a stage whose forward part is done and whose backward part is not."""
    most = 0
    for row in rows:
        now = 0
        for part in filter(None, row):
            now += 1 if part[0] == "F" else -1
            most = max(most, now)
    return most


def told(rows):
    return rows, bubble(rows), held(rows)
