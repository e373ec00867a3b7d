"""Numba compilation with a cache that knows all of its sources."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import numba
from numba import config
from numba.core.caching import FunctionCache

from pairflow import rng

_HERE = Path(__file__).parent


def _sources_digest() -> str:
    """A digest of all files whose functions are compiled: this folder's and `rng`."""
    sources = [*sorted(_HERE.parent.rglob("*.py")), Path(rng.__file__)]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


# Numba looks only at the file of the cached function: without the digest a kernel would outlive a change of
# a function that it calls in another module. (Path.home() raises an error for a user without a home.)
_HOME = Path(os.path.expanduser("~"), ".cache", "pairflow")  # noqa: PTH111
_FOLDER = _HERE / "__pycache__" if os.access(_HERE, os.W_OK) else _HOME
_CACHE = Path(config.CACHE_DIR or _FOLDER) / f"numba-{_sources_digest()}"


class _Cache(FunctionCache):
    """Machine code on disk. If it is damaged, or cannot be written, the function is compiled again."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file can raise anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        with suppress(Exception):
            super().save_overload(sig, data)


def compiled(function, *, makes_arrays=False):
    """`numba.njit` that releases the GIL and keeps its machine code on disk, if a folder can be written.

    Unless it `makes_arrays`, its code does not count references to arrays (Numba's "NRT"): with tuples of
    arrays, that takes a quarter of the engine's time.
    """
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, _nrt=makes_arrays)(
        function
    )  # C never calls it
    before, config.CACHE_DIR = config.CACHE_DIR, str(_CACHE)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:  # no folder can be written
        return dispatcher
    finally:
        config.CACHE_DIR = before
    return dispatcher


def inlined(function):
    """Compiled into its callers: for a small function of many arrays, whose passing would cost more."""
    return numba.njit(nogil=True, inline="always")(function)
