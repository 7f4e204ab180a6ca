"""A reader's file through the gates of its exercise, in order. The first gate that a kernel fails ends it."""

from pathlib import Path

from common.learn.exercise import KERNELS, Exercise, ExerciseError
from common.learn.gate import Gate, Grade, Say


def grade(exercise: Exercise, path: Path, say: Say = lambda gate: None) -> Grade:
    """Judges a file. `say` hears each gate as soon as it is known. Raises ExerciseError if there is no such file."""
    if not path.is_file():
        raise ExerciseError(f"{path}: no such file: `python learn.py start {exercise.id}` makes it")
    from common.learn import answer_gates, kernel_gates  # the engine: only where something is graded

    gates: list[Gate] = []
    for gate in (kernel_gates if exercise.kind in KERNELS else answer_gates).gates(exercise, path):
        say(gate)
        gates.append(gate)
        if gate.passed is None and len(gates) == 1:  # whether it is right is not known: the rest would mislead
            break
        if gate.passed is False and exercise.kind in KERNELS and not gate.is_extra:
            break
    return Grade(exercise, path, tuple(gates))
