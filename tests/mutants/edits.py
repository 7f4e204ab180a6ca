"""Changes of a text, as wrong versions are written: what each replaces stands in it exactly once."""

from collections.abc import Iterable

from common.pairs.user_error import UserError


class EditError(UserError, ValueError):
    """An edit that does not fit its text."""


def edited(text: str, edits: Iterable[tuple[str, str]], name: str) -> str:
    """The text after all (find, replace), in their order. `name`: whose they are. Raises EditError."""
    for find, replace in edits:
        if (times := text.count(find)) != 1:
            raise EditError(f"{name}: {find!r} stands there {times} times, not once")
        text = text.replace(find, replace)
    return text
