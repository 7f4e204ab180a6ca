"""begins a forward part in the step in which the stage before still computes its input"""

from schedules import told


def run(stages, micro_batches):
    forward, backward = ([(kind, i) for i in range(micro_batches)] for kind in "FB")
    rows = []
    for stage in range(stages):
        later = stages - 1 - stage
        rows.append([*forward, *[None] * later, *backward, *[None] * (stages - 1 - later)])
    return told(rows)
