"""Which checkout a notebook's `common` is of: two clones may share an environment, which imports one of them only."""

from html import escape
from pathlib import Path

from IPython.display import display

from common.notebook.markup import WHOLE_WORDS, Coloured, has_reader, tell_stops
from common.pairs.pair import ROOT
from common.pairs.user_error import UserError

MARK = "common/notebook"  # the folder that a checkout has


class OtherCheckout(UserError):
    """Python imports the course from another folder than the notebook's."""


def check(folder: Path) -> str:
    """What a notebook in this folder imports, as a line. Raises OtherCheckout if that is another's."""
    own = next((place for place in (folder, *folder.parents) if (place / MARK).is_dir()), ROOT).resolve()
    if own != ROOT:
        way = f"start it by `make lab` in {own}, or let its environment import that: `pip install -e {own}`"
        raise OtherCheckout(f"this notebook is of {own}, but Python imports the course from {ROOT}: {way}")
    return f"imports the course from {ROOT}"


def announce() -> None:
    """Show it to a reader, who is told of stops, too; a run whose outputs are kept is not. Raises OtherCheckout."""
    line = check(Path.cwd())
    if has_reader():
        display(Coloured(line, f"<small>{escape(line)}</small>{WHOLE_WORDS}"))
        tell_stops()
