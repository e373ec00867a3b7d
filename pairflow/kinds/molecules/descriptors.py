"""Descriptors of one molecule: fingerprint, scaffold, drug-likeness, synthetic accessibility, logP, weight.

All are RDKit's own, computed in `threads` processes. A string that RDKit cannot read has an empty
fingerprint, no scaffold and NaN for properties: a few molecules' canonical SMILES are such strings.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import QED, Crippen, Descriptors, rdFingerprintGenerator, rdMolDescriptors
from rdkit.Chem.Scaffolds import MurckoScaffold

from pairflow.kinds.molecules.similarity import BITS, WORDS
from pairflow.runtime.progress import bar
from pairflow.runtime.signals import end_with_parent

_CHUNK = 512  # molecules that a process takes at once

COMPUTED: dict[str, Callable[[Chem.Mol], float]] = {
    "qed": QED.qed,
    "logp": Crippen.MolLogP,
    "weight": Descriptors.MolWt,
    "rings": rdMolDescriptors.CalcNumRings,
}
"""What a model can be conditioned on: the quantitative estimate of drug-likeness, 0 to 1, higher is likelier
(Bickerton et al. 2012); the octanol-water partition coefficient by atom contributions (Wildman and Crippen
1999); molecular weight in g/mol; number of rings (of the smallest set of smallest rings)."""


def _synthetic_accessibility(molecule: Chem.Mol) -> float:
    from rdkit.Contrib.SA_Score import sascorer  # reads a table of fragments when it is first used

    return sascorer.calculateScore(molecule)


PROPERTIES: dict[str, Callable[[Chem.Mol], float]] = {
    "qed": COMPUTED["qed"],
    "sa": _synthetic_accessibility,
    "logp": COMPUTED["logp"],
    "weight": COMPUTED["weight"],
}
"""As in `COMPUTED`; and synthetic accessibility, 1 (easy) to 10 (Ertl and Schuffenhauer 2009,
RDKit's Contrib)."""


IDENTIFIERS: dict[str, Callable[[Chem.Mol], str]] = {
    "scaffold": lambda molecule: MurckoScaffold.MurckoScaffoldSmiles(mol=molecule),
    "inchikey": Chem.MolToInchiKey,
}
"""The Bemis-Murcko scaffold as in `structures`; the InChIKey, empty for a molecule that InChI lacks."""


def describe(molecule: Chem.Mol) -> dict[str, float | str]:
    """The `PROPERTIES` and the `IDENTIFIERS` of a molecule."""
    with rdBase.BlockLogs():
        return {name: value(molecule) for name, value in (PROPERTIES | IDENTIFIERS).items()}


def compute(name: str, smiles: Sequence[str]) -> np.ndarray:
    """(M,) float64: the property of each molecule; NaN for a string that RDKit cannot read."""
    with rdBase.BlockLogs():
        molecules = map(Chem.MolFromSmiles, smiles)
        values = [np.nan if molecule is None else COMPUTED[name](molecule) for molecule in molecules]
    return np.array(values, np.float64)


def properties(smiles: Sequence[str], threads: int = 1, progress: bool = False) -> np.ndarray:
    """(M, 4) float64: the `PROPERTIES` of each molecule."""
    rows = mapped(_properties, smiles, threads, progress, "properties")
    return np.array(rows, np.float64).reshape(-1, len(PROPERTIES))


def fingerprints(smiles: Sequence[str], threads: int = 1, progress: bool = False) -> np.ndarray:
    """(M, 32) uint64: the fingerprint of each molecule as `similarity` has it."""
    return _unpacked(mapped(_fingerprint, smiles, threads, progress, "fingerprints"))


def structures(
    smiles: Sequence[str], threads: int = 1, progress: bool = False
) -> tuple[np.ndarray, list[str]]:
    """`fingerprints`, and Bemis-Murcko scaffolds: the rings of a molecule and what links them, as canonical
    SMILES without stereochemistry, empty where there is no ring."""
    rows = mapped(_structure, smiles, threads, progress, "scaffolds")
    return _unpacked([fingerprint for fingerprint, _ in rows]), [scaffold for _, scaffold in rows]


def _unpacked(packed: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(packed), np.uint64).reshape(-1, WORDS)


def _properties(molecule: Chem.Mol | None) -> list[float]:
    return [np.nan if molecule is None else function(molecule) for function in PROPERTIES.values()]


def _fingerprint(molecule: Chem.Mol | None) -> bytes:
    if molecule is None:
        return bytes(BITS // 8)
    return DataStructs.BitVectToBinaryText(_morgan().GetFingerprint(molecule))


def _structure(molecule: Chem.Mol | None) -> tuple[bytes, str]:
    scaffold = "" if molecule is None else MurckoScaffold.MurckoScaffoldSmiles(mol=molecule)
    return _fingerprint(molecule), scaffold


@cache
def _morgan() -> Any:
    return rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=BITS)


def mapped(
    work: Callable[[Chem.Mol | None], Any], smiles: Sequence[str], threads: int, progress: bool, name: str
) -> list[Any]:
    """`work` on each molecule, None for a string that RDKit cannot read; in processes where that is worth
    it."""
    chunks = [smiles[first : first + _CHUNK] for first in range(0, len(smiles), _CHUNK)]
    values: list[Any] = []
    with bar(total=len(smiles), desc=name, unit="molecule", quiet=not progress) as molecules:
        for chunk in _run(partial(_work_on, work), chunks, min(threads, len(chunks))):
            molecules.update(len(chunk))
            values += chunk
    return values


def _work_on(work: Callable[[Chem.Mol | None], Any], smiles: Sequence[str]) -> list[Any]:
    with rdBase.BlockLogs():
        return list(map(work, map(Chem.MolFromSmiles, smiles)))


def _run(work: Callable[[Sequence[str]], list], chunks: list, processes: int) -> Iterator[list]:
    if processes < 2:
        yield from map(work, chunks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent) as pool:
        yield from pool.map(work, chunks)
