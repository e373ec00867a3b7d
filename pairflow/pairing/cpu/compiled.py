"""Numba compilation with a cache that knows all of its sources."""

import hashlib
import os
from pathlib import Path

import numba
from numba import config

from pairflow import rng

_HERE = Path(__file__).parent


def _sources_digest() -> str:
    """A digest of all files whose functions are compiled: this folder's and `rng`."""
    sources = [*sorted(_HERE.parent.rglob("*.py")), Path(rng.__file__)]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


# Numba looks only at the file of the cached function: without the digest a kernel would outlive a change of
# a function that it calls in another module.
_FOLDER = _HERE / "__pycache__" if os.access(_HERE, os.W_OK) else Path.home() / ".cache" / "pairflow"
_CACHE = Path(config.CACHE_DIR or _FOLDER) / f"numba-{_sources_digest()}"


def compiled(function):
    """`numba.njit` that releases the GIL and keeps its machine code on disk."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(_CACHE)
    try:
        return numba.njit(nogil=True, cache=True)(function)
    finally:
        config.CACHE_DIR = before
