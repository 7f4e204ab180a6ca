"""What a notebook shows in colour: a diff, an answer beside what was found, where a run stopped.

Colours are tints, legible on a light page and on a dark one. Without them signs and words say the same.
"""

import os
import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display

FORECASTER = "SPEED_OF_LIGHT_FORECASTER"  # `naive`: a notebook runs for its outputs, and nobody answers
GREEN, RED, YELLOW, GREY = "46, 160, 67", "248, 81, 73", "210, 153, 34", "127, 127, 127"
TINTS = {"+": GREEN, "-": RED, "@": GREY}
PRE = "margin: 0; overflow-x: auto; white-space: pre; line-height: 1.4"
# A page's own rule breaks a long line anywhere, in the middle of a word, too
WHOLE_WORDS = "<style>.jp-OutputArea pre { word-break: normal !important; overflow-wrap: anywhere }</style>"
CARD = "border-left: 4px solid rgb({0}); background: rgba({0}, 0.12); padding: 6px 12px; margin: 4px 0"
RIGHT, OPEN = ("right", "your range", "within"), ("nothing is scored", "the measurement is unsure")


@dataclass(frozen=True)
class Coloured:
    """`data`: the text, for what shows no HTML."""

    data: str
    html: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.data, "text/html": self.html}


def diff(lines: Iterable[str]) -> Coloured:
    """A unified diff: what goes in red, what comes in green."""
    text, rows = [*lines], []
    for line in text:
        tint = GREY if line.startswith(("---", "+++")) else TINTS.get(line[:1])
        style = f' style="background: rgba({tint}, 0.22)"' if tint else ""
        rows.append(f"<div{style}>{escape(line) or ' '}</div>")
    wide = f'<div style="display: inline-block; min-width: 100%">{"".join(rows)}</div>'
    return Coloured("\n".join(text), f'<pre style="{PRE}">{wide}</pre>')


def card(text: str, about: str = "") -> None:
    """Show what `against` or `compared` say: the answer, what was found, and how far they are apart."""
    first, *notes = text.splitlines()
    pair, _, judged = first.partition(": ")
    tint = GREEN if judged.startswith(RIGHT) else GREY if judged.startswith(OPEN) else YELLOW
    said = " &nbsp; ".join(map(escape, re.split(", (?=measured|counted|computed)", pair)))
    title = f"<b>{escape(about)}</b>: " if about else ""
    more = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    html = f'<div style="{CARD.format(tint)}"><div>{title}{said}</div><div><b>{escape(judged)}</b></div>{more}</div>'
    display(Coloured(f"{about}: {text}" if about else text, html))


def has_reader() -> bool:
    """Whether somebody sees the cells run. A run whose outputs are kept has no reader."""
    return bool(get_ipython()) and os.environ.get(FORECASTER) != "naive"


def bar(text: str, share: float) -> Coloured:
    """How far a measurement is, from 0 to 1."""
    return Coloured(text, f'<progress value="{share:.3f}"></progress> <small>{escape(text)}</small>')


def end() -> None:
    """The last cell of a notebook. A run that stops before it says so there (`tell_stops`)."""
    print("The run got to the end. How good your answers were: python learn.py progress")


def tell_stops() -> None:
    """From now on a run that stops says where, in its last cell: the kernel refuses the cells that follow an error."""
    shell = get_ipython()
    kernel = getattr(shell, "kernel", None)
    refuse = getattr(kernel, "_send_abort_reply", None)
    if shell is None or kernel is None or refuse is None:
        return

    def tell(stream: Any, message: Any, identities: Any) -> None:
        if "nb.end()" in message["content"]["code"]:
            cell = textwrap.shorten(shell.user_ns["In"][-1], 90)
            text = ["This run has not come to the end. It stopped at the cell", cell, str(sys.last_value)]
            said, code, why = map(escape, text)
            html = f'<div style="{CARD.format(YELLOW)}">{said} <code>{code}</code><div>{why}</div></div>'
            output = {"data": Coloured(" ".join(text), html)._repr_mimebundle_(), "metadata": {}}
            kernel.send_response(kernel.iopub_socket, "display_data", output)
        refuse(stream, message, identities)

    kernel._send_abort_reply = tell
