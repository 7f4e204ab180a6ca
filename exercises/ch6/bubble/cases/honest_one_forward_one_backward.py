"""does a backward part after each forward part, and holds as many micro-batches as there are stages"""

from schedules import one_forward_one_backward, play, told


def run(stages, micro_batches):
    return told(play(one_forward_one_backward(stages, micro_batches)))
