"""No file of a user's own is found: neither in PAIRFLOW_DATA_DIR nor in the cache."""

import pytest

from pairflow.data import sources


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of what was fetched, empty."""
    monkeypatch.delenv(sources.DATA_DIR, raising=False)
    monkeypatch.setattr(sources.pooch, "os_cache", lambda _: tmp_path / "cache")
    return tmp_path / "cache"
