"""takes the micro-batches in falling order, and their backward parts in rising order"""

from schedules import play, told


def run(stages, micro_batches):
    falling = range(micro_batches)[::-1]
    order = [("F", i) for i in falling] + [("B", i) for i in range(micro_batches)]
    return told(play([order] * stages))
