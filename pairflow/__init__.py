"""PairFlow: closed-form source-target coupling for few-step discrete flow models."""

import importlib
from typing import TYPE_CHECKING, Any

from pairflow._version import __version__ as __version__
from pairflow.errors import InputError as InputError
from pairflow.extras import named_extras

if TYPE_CHECKING:  # `as` tells type checkers that the names are public
    from pairflow import pairing as pairing
    from pairflow.api.dataset import PairDataset as PairDataset
    from pairflow.api.learning import distill as distill
    from pairflow.api.learning import train as train
    from pairflow.artifacts.pairs import read_pairs as read_pairs
    from pairflow.artifacts.pairs import write_pairs as write_pairs
    from pairflow.generate.loaded import LoadedModel as LoadedModel
    from pairflow.generate.loaded import load as load
    from pairflow.pairing.continuous import pair_continuous as pair_continuous
    from pairflow.pairing.pair import pair as pair
    from pairflow.pairing.transport import transport as transport
    from pairflow.pairing.transport import transport_continuous as transport_continuous
    from pairflow.report.results import results as results

_HOMES = {  # name -> its module
    "LoadedModel": "pairflow.generate.loaded",
    "PairDataset": "pairflow.api.dataset",
    "distill": "pairflow.api.learning",
    "load": "pairflow.generate.loaded",
    "pair": "pairflow.pairing.pair",
    "pair_continuous": "pairflow.pairing.continuous",
    "read_pairs": "pairflow.artifacts.pairs",
    "results": "pairflow.report.results",
    "train": "pairflow.api.learning",
    "transport": "pairflow.pairing.transport",
    "transport_continuous": "pairflow.pairing.transport",
    "write_pairs": "pairflow.artifacts.pairs",
}
__all__ = ["InputError", "__version__", "pairing", *_HOMES]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a name of `__all__` on first use, so that `pairflow doctor` starts even if NumPy is broken."""
    if name in _HOMES:
        with named_extras():
            return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "pairing":
        return importlib.import_module("pairflow.pairing")
    raise AttributeError(f"module 'pairflow' has no attribute '{name}'")
