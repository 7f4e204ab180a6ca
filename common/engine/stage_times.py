"""What a pair's process reports while it works, and how it spent its time."""

from collections.abc import Iterator
from contextlib import contextmanager

from common.engine.job import TURN
from common.isolation.worker import Say
from common.machine.clock import now


class Progress:
    """Reports progress; sums the seconds of each kind of work."""

    def __init__(self, say: Say, tells_turns: bool = False) -> None:
        self.say, self._tells_turns = say, tells_turns
        self.spent_s: dict[str, float] = {}
        self._checking: float | None = None  # the fraction of the check that is done, while it lasts
        self._doing, self._since = "", now()

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        """Inside, seconds count for `what`, and not for an outer kind."""
        before, self._doing = self._doing, self._switch(what)
        try:
            yield
        finally:
            self._doing = self._switch(before)

    def _switch(self, what: str) -> str:
        moment = now()
        if self._doing:
            self.spent_s[self._doing] = self.spent_s.get(self._doing, 0.0) + moment - self._since
        self._since = moment
        return what

    def checking(self, fraction: float | None) -> None:
        """This fraction of the check is done. Every call reports it again: a kernel in the interpreter may be slow."""
        self._checking = fraction
        if fraction is not None:
            self.say("check", fraction)

    @contextmanager
    def turn(self, label: str) -> Iterator[None]:
        """Inside, this candidate runs. A failure between two turns makes neither a suspect."""
        self._tell(label)
        yield
        self.checking(self._checking)
        self._tell("")

    def _tell(self, label: str) -> None:
        if self._tells_turns:
            self.say(label, TURN)
