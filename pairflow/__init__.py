"""PairFlow: closed-form source-target coupling for few-step discrete flow models."""

import importlib
from typing import TYPE_CHECKING, Any

from pairflow._version import __version__
from pairflow.errors import InputError

if TYPE_CHECKING:
    from pairflow import pairing
    from pairflow.pairing.pair import pair

__all__ = ["InputError", "__version__", "pair", "pairing"]


def __getattr__(name: str) -> Any:
    """`pair` and `pairing`, imported when asked for: `pairflow doctor` starts even where NumPy is broken."""
    if name == "pair":
        return importlib.import_module("pairflow.pairing.pair").pair
    if name == "pairing":
        return importlib.import_module("pairflow.pairing")
    raise AttributeError(f"module 'pairflow' has no attribute '{name}'")
