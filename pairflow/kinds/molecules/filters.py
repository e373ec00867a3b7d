"""Filters of molecules by their properties and substructures."""

from collections.abc import Callable
from typing import Any

from rdkit import Chem, rdBase

from pairflow.config import DemandSettings, parse_range
from pairflow.errors import InputError
from pairflow.kinds.molecules.conformers import embed
from pairflow.kinds.molecules.descriptors import PROPERTIES

Filter = Callable[[Chem.Mol], bool]


def filters_from(settings: DemandSettings) -> dict[str, Filter]:
    """The filters that the settings ask for, quick ones first, each under the option that asks for it.

    A filter says whether to keep a molecule. InputError for a SMARTS pattern that RDKit cannot read.
    """
    filters: dict[str, Filter] = {}
    for name in ("weight", "logp"):
        if text := getattr(settings, name):
            filters[f"--{name} {text}"] = _within(name, *parse_range(text))
    for pattern in settings.smarts:
        filters[f"--smarts {pattern}"] = _read_smarts("smarts", pattern)
    for pattern in settings.not_smarts:
        filters[f"--not-smarts {pattern}"] = _lacks(_read_smarts("not_smarts", pattern))
    if settings.min_qed is not None:
        filters[f"--min-qed {settings.min_qed:g}"] = _within("qed", settings.min_qed, 1.0)
    if settings.three_d:
        filters["--3d"] = lambda molecule: embed(Chem.MolToSmiles(molecule), settings.seed) is not None
    return filters


def _within(name: str, low: float, high: float) -> Filter:
    return lambda molecule: low <= PROPERTIES[name](molecule) <= high


def _read_smarts(setting: str, pattern: str) -> Filter:
    """Whether a molecule has the substructure."""
    with rdBase.BlockLogs():
        query: Any = Chem.MolFromSmarts(pattern)
    if query is None or not query.GetNumAtoms():
        raise InputError(f"{setting}: RDKit cannot read the SMARTS pattern {pattern!r}")
    return lambda molecule: molecule.HasSubstructMatch(query)


def _lacks(present: Filter) -> Filter:
    return lambda molecule: not present(molecule)
