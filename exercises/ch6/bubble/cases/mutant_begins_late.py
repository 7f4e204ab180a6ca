"""counts only the idle steps between the first and the last part of a stage"""

from schedules import bubble, held, one_forward_one_backward, play


def run(stages, micro_batches):
    rows = play(one_forward_one_backward(stages, micro_batches))
    inner = []
    for row in rows:
        busy = [step for step, part in enumerate(row) if part]
        inner.append(row[busy[0] : busy[-1] + 1])
    return rows, bubble(inner), held(rows)
