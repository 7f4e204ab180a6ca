"""What a user is told of bad input: one line that any terminal can show."""


def printable(text: str) -> str:
    """What moves a cursor, changes a colour or cannot be encoded is written out."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


class OneLine(Exception):
    """Bad input of any kind; str() is the one line that its user reads."""

    def __str__(self) -> str:
        return printable(super().__str__())
