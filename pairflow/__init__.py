"""PairFlow: closed-form source-target coupling for few-step discrete flow models."""

import importlib
from typing import TYPE_CHECKING, Any

from pairflow._version import __version__
from pairflow.errors import InputError

if TYPE_CHECKING:
    from pairflow import pairing
    from pairflow.artifacts.pairs import write_pairs
    from pairflow.generate.sample import sample
    from pairflow.pairing.continuous import pair_continuous
    from pairflow.pairing.pair import pair
    from pairflow.pairing.transport import transport, transport_continuous
    from pairflow.report.results import results

__all__ = [
    "InputError",
    "__version__",
    "pair",
    "pair_continuous",
    "pairing",
    "results",
    "sample",
    "transport",
    "transport_continuous",
    "write_pairs",
]

_HOMES = {  # function -> its module
    "pair": "pairflow.pairing.pair",
    "pair_continuous": "pairflow.pairing.continuous",
    "results": "pairflow.report.results",
    "sample": "pairflow.generate.sample",
    "transport": "pairflow.pairing.transport",
    "transport_continuous": "pairflow.pairing.transport",
    "write_pairs": "pairflow.artifacts.pairs",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """What `__all__` names, imported when asked for: `pairflow doctor` starts even where NumPy is broken."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "pairing":
        return importlib.import_module("pairflow.pairing")
    raise AttributeError(f"module 'pairflow' has no attribute '{name}'")
