"""Messages between a child and its parent while the child works."""

from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Say = Callable[[str, float], None]  # a stage that was reached, and the fraction of it that is done
LONG = -2.0  # said in place of a fraction: until the next word a library may compile (torch.compile), for minutes
Ask = Callable[[str], Any]  # a question; the child waits for the answer


class Line:
    """The child's end of the line to its parent, which ends a child that is silent for `deadline_s`."""

    def __init__(self, pipe: Connection, deadline_s: float) -> None:
        self._pipe, self.deadline_s = pipe, deadline_s

    def __call__(self, stage: str, fraction: float) -> None:
        self._pipe.send(("say", stage, fraction))

    def ask(self, question: str) -> Any:
        self._pipe.send(("ask", question))
        return self._pipe.recv()

    def fail(self, reason: str) -> None:
        """The parent ends this child and all that it has started, at once, for this reason."""
        self._pipe.send(("error", reason))
