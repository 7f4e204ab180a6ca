"""Changes of a text, as wrong versions are written: what each replaces stands in it exactly once."""

from collections.abc import Iterable


def edited(text: str, edits: Iterable[tuple[str, str]], name: str) -> str:
    """The text after all (find, replace), in their order. `name`: whose they are. Raises ValueError."""
    for find, replace in edits:
        if (times := text.count(find)) != 1:
            raise ValueError(f"{name}: {find!r} stands there {times} times, not once")
        text = text.replace(find, replace)
    return text
