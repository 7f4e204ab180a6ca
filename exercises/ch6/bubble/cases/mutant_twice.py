"""computes one micro-batch twice in place of the last one"""

from schedules import all_forward_first, play, told


def run(stages, micro_batches):
    rows = play(all_forward_first(stages, micro_batches))
    last = micro_batches - 1
    return told([[(part[0], 0) if part and part[1] == last else part for part in row] for row in rows])
