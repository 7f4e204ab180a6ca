"""Messages between a child and its parent while the child works."""

from collections.abc import Callable
from enum import Enum
from multiprocessing.connection import Connection
from typing import Any

Report = Callable[[str, float], None]  # a stage that was reached, and the fraction of it that is done
MAY_COMPILE = -2.0  # in place of a fraction: until the next report a library may compile (torch.compile), for minutes
Ask = Callable[[str], Any]  # a question; the child waits for the answer


class End(Enum):
    """How a child ended that was not done."""

    RAISED = "raised"
    HUNG = "hung"
    KILLED = "killed"  # by a signal
    ENDED = "ended"  # it left, could not be started, or was ended for what it did


class ParentPipe:
    """The child's end of the pipe to its parent, which ends a child that is silent for `deadline_s`."""

    def __init__(self, pipe: Connection, deadline_s: float) -> None:
        self._pipe, self.deadline_s = pipe, deadline_s

    def __call__(self, stage: str, fraction: float) -> None:
        self._pipe.send(("progress", stage, fraction))

    def ask(self, question: str) -> Any:
        self._pipe.send(("ask", question))
        return self._pipe.recv()

    def fail(self, reason: str, end: End = End.RAISED) -> None:
        """The parent ends this child and all that it has started, at once, for this reason."""
        self._pipe.send(("error", reason, end))
