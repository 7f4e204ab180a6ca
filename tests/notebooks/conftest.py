"""What readers predict is kept in work/: a test's predictions are kept elsewhere."""

import pytest

from common.notebook import predictions


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """The file in which predictions are kept."""
    monkeypatch.setattr("common.learn.progress.WORK", tmp_path / "work")
    return tmp_path / "work/progress.jsonl"


@pytest.fixture
def naive(tmp_path, monkeypatch):
    """What the naive forecaster answers to ch9/stride."""
    file = tmp_path / "forecaster.toml"
    file.write_text('["ch9/stride"]\nratio = 8.0\nresource = "memory"\n', encoding="utf-8")
    monkeypatch.setattr(predictions, "NAIVE", file)
    monkeypatch.delenv(predictions.FORECASTER, raising=False)
    return lambda: monkeypatch.setenv(predictions.FORECASTER, "naive")
