"""Computes descriptors of molecules, such as weight or fingerprint, and tables of them."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import QED, Crippen, Descriptors, rdFingerprintGenerator, rdMolDescriptors
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogEntry, FilterCatalogParams, SmartsMatcher

from pairflow.kinds.molecules.structures.similarity import BITS
from pairflow.kinds.molecules.structures.standardise import scaffold
from pairflow.runtime.processes import map_chunks
from pairflow.runtime.progress import bar

DIGITS = {"qed": 3, "sa": 2, "logp": 2, "weight": 2, "similarity": 3, "seed_similarity": 3}
"""Digits after the decimal point of each property."""
_CHUNK = 512  # molecules that are sent to a process at a time
ALERTS = ("PAINS", "NIH", "BRENK", "pairflow")
"""RDKit's catalogues of chemical groups that disturb assays (PAINS, Baell and Holloway 2010), are reactive
(NIH, Jadhav et al. 2010, Doveston et al. 2015) or unwanted (BRENK, Brenk et al. 2008), and ODD_BONDS."""
_OWN = "pairflow"  # the name of the catalogue of ODD_BONDS
_AMINE = "[N;X3,X4;!$(N-[#6]=[O,S,N]);!$(N-S=O)]"
ODD_BONDS = {
    "aliphatic aldehyde": "[CX3H](=O)-C",
    "benzaldehyde": "[CX3H](=O)-c1ccccc1",
    "heteroaromatic aldehyde": "[CX3H](=O)-[c;!$(c1ccccc1)]",
    "formamide": "[CX3H](=O)-[#7]",
    "formate": "[CX3H](=O)-[O,S]",
    "S-H": "[#16;!H0]",
    "N-O": "[N;X3,X4;!$(N(=O)[O-])]-!@[OX2,OX1-]",
    "hydrazine": f"{_AMINE}-!@{_AMINE}",
    "hydrazide": f"[NX3;$(N-[#6]=[O,S])]-!@{_AMINE}",
    "N-C-N": "[N;X3,X4]-!@[CX4]-!@[N;X3,X4]",
    "N-C-N, partly in a ring": "[N;X3,X4]-!@[CX4]-@[N;X3,X4]",
    "N-C-O": "[N,n;X3,X4]-!@[CX4]-!@[OX2,OX1-]",
    "N-C-S": "[N,n;X3,X4]-!@[CX4]-!@[SX2,SX1-]",
    "carbon between O or S": "[O,S;X2,X1-]-!@[CX4]-!@[O,S;X2,X1-]",
    "hemiacetal": "[OX2H,OX1-]-[CX4]-[#7,#8,#16]",
    "alkoxide": "[OX1-]-[CX4]",
    "enol": "[OX2H,OX1-]-[CX3]=C",
    "aryl ammonium": "[NX4+]-a",
    "acyl ammonium": "[NX4+]-[#6,#16]=[!#6]",
    "N-ammonium": "[NX4+]-[#7,#8]",
}
"""Groups, as SMARTS, that are more frequent in samples of models than in libraries: hydrogen at a place that
a group left free, a carbon between two heteroatoms, bonds between heteroatoms, and odd charges."""
_MORGAN: Any = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=BITS)
_ATOMS: Any = rdFingerprintGenerator.GetMorganGenerator(radius=1)
CHEMBL = ("CHEMBL",)  # the seven lists of ChEMBL, such as Glaxo's; 63 % of ZINC-250k has one
EXCLUDED = 10  # NIBR's severity score of a molecule that must not be screened


@cache
def _catalogue(*names: str) -> FilterCatalog:
    parameters = FilterCatalogParams()
    for name in set(names) - {_OWN}:
        parameters.AddCatalog(getattr(FilterCatalogParams.FilterCatalogs, name))
    catalogue = FilterCatalog(parameters)
    for name, pattern in ODD_BONDS.items() if _OWN in names else ():
        entry = FilterCatalogEntry(name, SmartsMatcher(name, pattern))
        entry.SetProp("FilterSet", _OWN)
        catalogue.AddEntry(entry)
    return catalogue


@cache
def _nibr() -> FilterCatalog:
    from rdkit.Contrib.NIBRSubstructureFilters.assignSubstructureFilters import buildFilterCatalog

    return buildFilterCatalog()


def ring_systems(molecule: Chem.Mol) -> list[str]:
    """Return the ring systems of a molecule as SMILES without stereochemistry. Rings that share an atom are
    one system. Atoms that are double-bonded to a ring belong to its system."""
    systems: list[set[int]] = []
    for ring in map(set, molecule.GetRingInfo().AtomRings()):
        joined = [system for system in systems if system & ring]
        systems = [system for system in systems if not system & ring] + [ring.union(*joined)]
    for system in systems:
        bonds = [bond for atom in system for bond in molecule.GetAtomWithIdx(atom).GetBonds()]
        doubled = [bond for bond in bonds if bond.GetBondType() == Chem.BondType.DOUBLE]
        system.update(atom for bond in doubled for atom in (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
    return [Chem.MolFragmentToSmiles(molecule, sorted(system), isomericSmiles=False) for system in systems]


def surroundings(molecule: Chem.Mol) -> list[int]:
    """Return for each atom a hash of the atom, its bonds and its neighbours (Morgan, radius 1)."""
    output = rdFingerprintGenerator.AdditionalOutput()
    output.AllocateBitInfoMap()
    _ATOMS.GetSparseCountFingerprint(molecule, additionalOutput=output)
    widest: dict[int, tuple[int, int]] = {}  # an atom without neighbours has radius 0 only
    for number, centres in output.GetBitInfoMap().items():
        for atom, radius in centres:
            widest[atom] = max(widest.get(atom, (0, 0)), (radius, number))
    return [number for _, (_, number) in sorted(widest.items())]


def alerts(molecule: Chem.Mol, catalogues: Sequence[str] = ALERTS) -> list[str]:
    """Return the unwanted groups in a molecule that the `catalogues` list, sorted, each as the text
    `catalogue: name`."""
    matches = _catalogue(*catalogues).GetMatches(molecule)
    return sorted(f"{match.GetProp('FilterSet')}: {match.GetDescription()}" for match in matches)


def severity(molecule: Chem.Mol) -> int:
    """Return the severity score of NIBR (Schuffenhauer et al. 2020): the number of flagged groups, or
    EXCLUDED if a group rules the molecule out."""
    flags = [int(match.GetDescription().split("__")[1]) for match in _nibr().GetMatches(molecule)]
    return EXCLUDED if 2 in flags else sum(flags)


def _synthetic_accessibility(molecule: Chem.Mol) -> float:
    from rdkit.Contrib.SA_Score import sascorer  # its first call reads a table of fragments

    return sascorer.calculateScore(molecule)


DESCRIPTORS: dict[str, Callable[[Chem.Mol], Any]] = {
    "qed": QED.qed,
    "sa": _synthetic_accessibility,
    "logp": Crippen.MolLogP,
    "weight": Descriptors.MolWt,
    "heavy_atoms": lambda molecule: molecule.GetNumHeavyAtoms(),
    "heteroatoms": rdMolDescriptors.CalcNumHeteroatoms,
    "rings": rdMolDescriptors.CalcNumRings,
    "largest_ring": lambda molecule: max(map(len, molecule.GetRingInfo().AtomRings()), default=0),
    "scaffold": scaffold,
    "inchikey": Chem.MolToInchiKey,
    "fingerprint": lambda molecule: DataStructs.BitVectToBinaryText(_MORGAN.GetFingerprint(molecule)),
    "ring_systems": ring_systems,
    "surroundings": surroundings,
    "alerts": alerts,
    "severity": severity,
}
"""The functions that compute descriptors, by name.

- `qed`: quantitative estimate of drug-likeness, from 0 to 1 (best) (Bickerton et al. 2012).
- `sa`: synthetic accessibility, from 1 (easy) to 10 (Ertl and Schuffenhauer 2009, RDKit's Contrib).
- `logp`: octanol-water partition coefficient by atom contributions (Wildman and Crippen 1999).
- `weight`: molecular weight in g/mol.
- `heavy_atoms`: number of atoms besides hydrogen.
- `heteroatoms`: number of atoms besides carbon and hydrogen.
- `rings`, `largest_ring`: number of rings, and atoms in the largest (smallest set of smallest rings).
- `scaffold`: Bemis-Murcko scaffold.
- `inchikey`: InChIKey, empty if InChI does not support the molecule.
- `fingerprint`: packed bits, see `similarity.py`.
- `ring_systems`, `surroundings`, `alerts`, `severity`: see these functions.
"""
PROPERTIES = ("qed", "sa", "logp", "weight")
STRUCTURES = ("fingerprint", "scaffold")
_UNREADABLE = {
    **{"largest_ring": 0, "scaffold": "", "fingerprint": bytes(BITS // 8)},
    **dict.fromkeys(("ring_systems", "surroundings", "alerts"), ()),
}


def describe(molecule: Chem.Mol) -> dict[str, float | str]:
    """Return the properties of a molecule, its scaffold and its InChIKey, by name."""
    with rdBase.BlockLogs():
        return {name: DESCRIPTORS[name](molecule) for name in (*PROPERTIES, "scaffold", "inchikey")}


def compute(name: str, smiles: Sequence[str]) -> np.ndarray:
    """Compute one property of M molecules: (M,) float64, NaN for a string that RDKit cannot read."""
    return tabulate((name,), smiles)[name].to_numpy(np.float64)


def tabulate(
    names: Sequence[str], smiles: Sequence[str], threads: int = 1, progress: bool = False
) -> pd.DataFrame:
    """Describe each of the molecules `smiles` in a row of a table, with the DESCRIPTORS `names` as columns.

    The work is done in `threads` processes. RDKit cannot read a few of the canonical SMILES that it writes.
    The row of such a molecule has an empty fingerprint, no scaffold, ring systems, surroundings or alerts, 0
    as the largest ring, and NaN for all other descriptors.
    """
    chunks = [smiles[first : first + _CHUNK] for first in range(0, len(smiles), _CHUNK)]
    rows: list[list[object]] = []
    with bar(total=len(smiles), desc="descriptors", unit="molecule", quiet=not progress) as molecules:
        for chunk in map_chunks(partial(_rows, names), chunks, min(threads, len(chunks))):
            molecules.update(len(chunk))
            rows += chunk
    return pd.DataFrame(rows, columns=[*names])


def _rows(names: Sequence[str], smiles: Sequence[str]) -> list[list[object]]:
    unreadable = [_UNREADABLE.get(name, np.nan) for name in names]
    with rdBase.BlockLogs():
        molecules = map(Chem.MolFromSmiles, smiles)
        return [[DESCRIPTORS[name](one) for name in names] if one else unreadable for one in molecules]
