"""What a child and its parent say to each other while the child works."""

from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Say = Callable[[str, float], None]  # the stage that was reached, and what fraction of it
Ask = Callable[[str], Any]  # a question, for whose answer the child waits


class Line:
    """From a child to its parent."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __call__(self, stage: str, fraction: float) -> None:
        self._pipe.send(("say", stage, fraction))

    def ask(self, question: str) -> Any:
        self._pipe.send(("ask", question))
        return self._pipe.recv()
