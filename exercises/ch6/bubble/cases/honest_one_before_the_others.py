"""takes one micro-batch through before the others begin"""

from schedules import play, told


def run(stages, micro_batches):
    others = [(kind, i) for kind in "FB" for i in range(1, micro_batches)]
    return told(play([[("F", 0), ("B", 0), *others]] * stages))
