"""Couplings of sources and data in a batch, one per module; `config.BASES` assigns them to methods."""

from importlib import import_module

from pairflow.flow.couple.coupling import Coupling


def load(name: str) -> type[Coupling]:
    """Import the module `name` of this folder; return its coupling, the class COUPLING."""
    return import_module(f"pairflow.flow.couple.{name}").COUPLING
