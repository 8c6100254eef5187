"""Tests of data have an empty cache, and no network."""

from pathlib import Path

import pytest

from tests.datasets.samples import offline


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    return tmp_path / "cache" / "rbmle" / "datasets"
