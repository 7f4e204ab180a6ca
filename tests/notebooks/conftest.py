"""What readers predict is kept in work/: a test's predictions are kept elsewhere."""

import pytest

from common.notebook import forecast_cells


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """The file in which predictions are kept."""
    monkeypatch.setattr("common.learn.learner_log.WORK", tmp_path / "work")
    return tmp_path / "work/progress.jsonl"


@pytest.fixture
def naive(tmp_path, monkeypatch):
    """What the naive forecaster answers to ch9/stride."""
    file = tmp_path / "forecaster.toml"
    file.write_text('["ch9/stride"]\nratio = 8.0\nresource = "memory"\n', encoding="utf-8")
    monkeypatch.setattr(forecast_cells, "NAIVE", file)
    monkeypatch.delenv(forecast_cells.FORECASTER, raising=False)
    return lambda: monkeypatch.setenv(forecast_cells.FORECASTER, "naive")
