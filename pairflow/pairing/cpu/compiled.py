"""Numba compilation, with a disk cache that is keyed by the content of all sources."""

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
    """Return a digest of all files with compiled functions: `pairing` and `rng`."""
    sources = [*sorted(_HERE.parent.rglob("*.py")), Path(rng.__file__)]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


# Numba checks only the file of the cached function. Without the digest a cached kernel would be used after a
# change of a function that it calls in another module. (Path.home() fails for a user without a home folder.)
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


def compiled(function, *, makes_arrays=False, sums_in_any_order=False):
    """Compile a function with `numba.njit`, to run without the GIL; cache its code on disk if possible.

    If `makes_arrays` is false, the function is compiled without reference counting of arrays (Numba's "NRT"),
    which would take a quarter of the engine's time for tuples of arrays. With `sums_in_any_order`, sums of
    float numbers take vector instructions, and their last bits depend on the machine.
    """
    fast = {"reassoc", "nsz", "contract"} if sums_in_any_order else False
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, _nrt=makes_arrays, fastmath=fast)(
        function
    )  # C never calls it
    # Numba reads the folder only while it makes a cache, so the user's setting can be put back.
    before, config.CACHE_DIR = config.CACHE_DIR, str(_CACHE)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:  # no folder can be written
        return dispatcher
    finally:
        config.CACHE_DIR = before
    return dispatcher


def inlined(function):
    """Inline a small function into its callers: passing its many arrays would cost more than its work."""
    return numba.njit(nogil=True, inline="always")(function)
