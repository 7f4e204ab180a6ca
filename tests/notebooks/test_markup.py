"""What a notebook shows in colour: what goes is red and what comes is green, and text says all without colours."""

import re
from types import SimpleNamespace

import pytest

from common.notebook import cells, markup, nb


def test_a_diff_tints_what_goes_and_what_comes_and_keeps_its_signs():
    lines = ["--- old.py", "+++ new.py", "@@ -1 +1 @@", " if a < b:", "-    x", "+    y"]
    shown = markup.diff(iter(lines))._repr_mimebundle_()
    rows = re.findall(r"<div(?: style=\"background: rgba\((.*?), 0.22\)\")?>([^<]+)</div>", shown["text/html"])
    tints = [markup.GREY] * 3 + ["", markup.RED, markup.GREEN]
    assert rows == list(zip(tints, [line.replace("<", "&lt;") for line in lines], strict=True))
    assert shown["text/plain"].splitlines() == lines


@pytest.mark.parametrize(
    ("text", "tint"),
    [
        (nb.compared(8, 8), markup.GREEN),
        (nb.compared(8, 12), markup.YELLOW),
        (nb.compared("same", "unsure"), markup.GREY),
    ],
)
def test_a_card_has_what_was_said_and_found_and_is_green_if_it_was_right(text, tint, monkeypatch):
    shown = []
    monkeypatch.setattr(markup, "display", shown.append)
    nb.card(text + "\na < b", "ring")
    assert shown[0].data == f"ring: {text}\na < b"
    assert f"solid rgb({tint})" in shown[0].html and "<b>ring</b>" in shown[0].html and "a &lt; b" in shown[0].html
    assert all(part in shown[0].html for part in re.split(", |: ", text))


def test_a_stopped_run_says_where_in_the_cell_that_ends_the_notebook_and_in_no_other(monkeypatch):
    class Kernel:
        iopub_socket = "socket"

        def _send_abort_reply(self, *message):
            refused.append(message)

        def send_response(self, socket, kind, content):
            sent.append((socket, kind, content["data"]["text/plain"]))

    refused, sent = [], []
    shell = SimpleNamespace(kernel=Kernel(), user_ns={"In": ["", "nb.predict(\n    'ch9/stride', ratio=None)"]})
    monkeypatch.setattr(markup, "get_ipython", lambda: shell)
    monkeypatch.setattr("sys.last_value", ValueError("why"), raising=False)
    markup.tell_stops()
    for code in ("x = 1", "nb.end()"):
        shell.kernel._send_abort_reply("stream", {"content": {"code": code}}, "identities")
    assert len(refused) == 2
    text = "This run has not come to the end. It stopped at the cell nb.predict( 'ch9/stride', ratio=None) why"
    assert sent == [("socket", "display_data", text)]


def test_a_reader_sees_how_far_a_measurement_is_and_kept_outputs_have_nothing_of_it(monkeypatch):
    shown, pairs = [], [SimpleNamespace(name=name) for name in ("one", "other")]

    def run_pairs(pairs, size, on_progress=lambda *progress: None):
        for pair in pairs:
            on_progress(pair, size, "rounds", 0.5)
        return "record"

    monkeypatch.setattr(cells.runner, "run_pairs", run_pairs)
    monkeypatch.setattr(cells, "display", lambda line, display_id: SimpleNamespace(update=shown.append))
    assert nb.run_pairs(pairs, "cpu") == "record" and shown == []
    monkeypatch.setattr(cells, "has_reader", lambda: True)
    assert nb.run_pairs(pairs, "cpu") == "record"
    assert [line.data for line in shown[:2]] == ["one cpu: rounds", "other cpu: rounds"]
    assert [re.search(r'value="(.*?)"', line.html)[1] for line in shown] == ["0.250", "0.750", "1.000"]
