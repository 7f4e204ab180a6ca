"""What learn.py prints, on terminals of several widths."""

import shutil

import pytest

from common.cli import learn_commands


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("words", [["list"], ["start", "ch2/channels_first"], ["progress"], ["hint"]])
def test_what_is_printed_fits_a_terminal_with_no_word_broken(words, width, tmp_path, monkeypatch, capsys):
    for module in ("common.learn.exercise", "common.learn.learner_log", "common.learn.submission"):
        monkeypatch.setattr(f"{module}.WORK", tmp_path / "work")
    texts = []
    for columns in (width, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        learn_commands.main(words)
        texts.append(capsys.readouterr().out)
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
    narrow, wide = texts
    assert max(map(len, narrow.splitlines())) <= width
    assert set(narrow.replace("─", "").split()) == set(wide.replace("─", "").split())
