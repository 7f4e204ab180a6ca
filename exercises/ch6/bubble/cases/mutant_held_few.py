"""says that it holds as many micro-batches as there are stages, also where there are fewer micro-batches than stages"""

from schedules import bubble, one_forward_one_backward, play


def run(stages, micro_batches):
    rows = play(one_forward_one_backward(stages, micro_batches))
    return rows, bubble(rows), stages
