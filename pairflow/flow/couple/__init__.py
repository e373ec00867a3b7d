"""How the sources that are drawn for a batch meet its data: a module each, which `config.BASES` name."""

from importlib import import_module

from pairflow.flow.couple.coupling import Coupling


def load(name: str) -> type[Coupling]:
    """The coupling of that name, the class that its module calls COUPLING."""
    return import_module(f"pairflow.flow.couple.{name}").COUPLING
