"""What readers predict is kept in work/: a test's predictions are kept elsewhere."""

import pytest


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """The file in which predictions are kept."""
    monkeypatch.setattr("common.learn.progress.WORK", tmp_path / "work")
    return tmp_path / "work/progress.jsonl"
