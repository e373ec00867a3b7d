"""Descriptors of molecules, each a function of RDKit's molecule, and tables of them."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import BRICS, QED, Crippen, Descriptors, rdFingerprintGenerator, rdMolDescriptors
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

from pairflow.kinds.molecules.similarity import BITS
from pairflow.kinds.molecules.standardise import scaffold
from pairflow.runtime.progress import bar
from pairflow.runtime.signals import end_with_parent

_CHUNK = 512  # molecules that a process takes at once
_FILTERS = ("PAINS", "NIH")
"""RDKit's catalogues of groups that disturb assays, or are reactive (Baell and Holloway 2010; Jadhav et al.
2010, Doveston et al. 2015)."""


@cache
def _morgan() -> Any:
    return rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=BITS)


@cache
def _catalogue() -> FilterCatalog:
    parameters = FilterCatalogParams()
    for name in _FILTERS:
        parameters.AddCatalog(getattr(FilterCatalogParams.FilterCatalogs, name))
    return FilterCatalog(parameters)


def _synthetic_accessibility(molecule: Chem.Mol) -> float:
    from rdkit.Contrib.SA_Score import sascorer  # reads a table of fragments when it is first used

    return sascorer.calculateScore(molecule)


DESCRIPTORS: dict[str, Callable[[Chem.Mol], Any]] = {
    "qed": QED.qed,
    "sa": _synthetic_accessibility,
    "logp": Crippen.MolLogP,
    "weight": Descriptors.MolWt,
    "rings": rdMolDescriptors.CalcNumRings,
    "largest_ring": lambda molecule: max(map(len, molecule.GetRingInfo().AtomRings()), default=0),
    "scaffold": scaffold,
    "inchikey": Chem.MolToInchiKey,
    "fingerprint": lambda molecule: DataStructs.BitVectToBinaryText(_morgan().GetFingerprint(molecule)),
    "fragments": lambda molecule: Chem.MolToSmiles(BRICS.BreakBRICSBonds(molecule)).split("."),
    "passes": lambda molecule: not _catalogue().HasMatch(molecule),
}
"""By name: the quantitative estimate of drug-likeness, 0 to 1, higher is likelier (Bickerton et al. 2012);
synthetic accessibility, 1 (easy) to 10 (Ertl and Schuffenhauer 2009, RDKit's Contrib); the octanol-water
partition coefficient by atom contributions (Wildman and Crippen 1999); molecular weight in g/mol; number of
rings, and atoms of the largest (of the smallest set of smallest rings); the Bemis-Murcko scaffold; the
InChIKey, empty for a molecule that InChI lacks; the packed fingerprint as `similarity` has it; the pieces
after cuts at all BRICS bonds (Degen et al. 2008), with dummy atoms at the cuts; whether no group of _FILTERS
is in it."""
PROPERTIES = ("qed", "sa", "logp", "weight")
COMPUTED = ("qed", "logp", "weight", "rings")  # what a model can be conditioned on
STRUCTURES = ("fingerprint", "scaffold")
PIECES = ("fragments", "passes")
_UNREADABLE = {
    **{"largest_ring": 0, "scaffold": "", "fingerprint": bytes(BITS // 8), "fragments": (), "passes": False}
}


def describe(molecule: Chem.Mol) -> dict[str, float | str]:
    """The properties of a molecule, its scaffold and its InChIKey."""
    with rdBase.BlockLogs():
        return {name: DESCRIPTORS[name](molecule) for name in (*PROPERTIES, "scaffold", "inchikey")}


def compute(name: str, smiles: Sequence[str]) -> np.ndarray:
    """(M,) float64: the property of each molecule; NaN for a string that RDKit cannot read."""
    return tabulate((name,), smiles)[name].to_numpy(np.float64)


def tabulate(
    names: Sequence[str], smiles: Sequence[str], threads: int = 1, progress: bool = False
) -> pd.DataFrame:
    """A row for each molecule, with DESCRIPTORS as columns, computed in `threads` processes.

    A string that RDKit cannot read has an empty fingerprint, no scaffold, ring or fragment, passes no filter,
    and has NaN for properties: a few molecules' canonical SMILES are such strings.
    """
    chunks = [smiles[first : first + _CHUNK] for first in range(0, len(smiles), _CHUNK)]
    rows: list[list[Any]] = []
    with bar(total=len(smiles), desc="descriptors", unit="molecule", quiet=not progress) as molecules:
        for chunk in _run(partial(_rows, names), chunks, min(threads, len(chunks))):
            molecules.update(len(chunk))
            rows += chunk
    return pd.DataFrame(rows, columns=[*names])


def _rows(names: Sequence[str], smiles: Sequence[str]) -> list[list[Any]]:
    unreadable = [_UNREADABLE.get(name, np.nan) for name in names]
    with rdBase.BlockLogs():
        molecules = map(Chem.MolFromSmiles, smiles)
        return [[DESCRIPTORS[name](one) for name in names] if one else unreadable for one in molecules]


def _run(work: Callable[[Sequence[str]], list], chunks: list, processes: int) -> Iterator[list]:
    if processes < 2:
        yield from map(work, chunks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent) as pool:
        yield from pool.map(work, chunks)
