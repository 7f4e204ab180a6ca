"""Messages about bad input: one line that any terminal can show."""


def printable(text: str) -> str:
    """The text with characters escaped that move a cursor, change a colour or cannot be encoded."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


class OneLine(Exception):
    """Bad input of any kind; str() is the one-line message."""

    def __str__(self) -> str:
        return printable(super().__str__())
