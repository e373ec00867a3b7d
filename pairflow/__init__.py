"""PairFlow: closed-form source-target coupling for few-step discrete flow models."""

from pairflow import pairing
from pairflow._version import __version__
from pairflow.errors import InputError
from pairflow.pairing.engine import pair

__all__ = ["InputError", "__version__", "pair", "pairing"]
