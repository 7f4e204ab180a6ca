"""takes the next micro-batch when the last one is through: its bubble is large, and it says so"""

from schedules import told


def run(stages, micro_batches):
    rows = [[] for _ in range(stages)]
    for i in range(micro_batches):
        for kind, order in (("F", range(stages)), ("B", reversed(range(stages)))):
            for at_work in order:
                for stage, row in enumerate(rows):
                    row.append((kind, i) if stage == at_work else None)
    return told(rows)
