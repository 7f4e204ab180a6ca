"""begins the backward parts in the first stage, without gradients of the stage after"""

from schedules import told


def run(stages, micro_batches):
    rows = []
    for stage in range(stages):
        before, after = [None] * stage, [None] * (stages - 1 - stage)
        forward, backward = ([(kind, i) for i in range(micro_batches)] for kind in "FB")
        rows.append([*before, *forward, *after, *before, *backward, *after])
    return told(rows)
