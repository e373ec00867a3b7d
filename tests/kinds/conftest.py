"""No file of a user's own is found: neither in PAIRFLOW_DATA_DIR nor in the cache."""

import pytest

from pairflow.data import download


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of what was fetched, empty."""
    monkeypatch.delenv(download.DATA_DIR, raising=False)
    monkeypatch.setattr(download.pooch, "os_cache", lambda _: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def copies(tmp_path, cache, monkeypatch):
    """The folder of local copies, empty."""
    monkeypatch.setenv(download.DATA_DIR, str(tmp_path))
    return tmp_path
