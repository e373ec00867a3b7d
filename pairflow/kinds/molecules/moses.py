"""Measures of MOSES (Polykovskiy et al. 2020): molecules beside held-out ones, and filters.

As there, samples are compared with all held-out molecules, and with those whose scaffold no training molecule
has. Here every molecule counts once, fingerprints have 2,048 bits, and the filters are RDKit's.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import BRICS
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

from pairflow.kinds.molecules import descriptors
from pairflow.kinds.molecules.chemistry import DescribedMolecules, TrainingMolecules
from pairflow.kinds.molecules.similarity import Neighbours, root_mean_square_diversity

FILTERS = ("PAINS", "NIH")
"""RDKit's catalogues of groups that disturb assays, or are reactive (Baell and Holloway 2010; Jadhav et al.
2010, Doveston et al. 2015)."""

REFERENCES = dict.fromkeys(
    [
        f"{part}_{kind}"
        for part in ("held_out", "unseen")
        for kind in ("similarity", "fragments", "scaffolds")
    ],
    "test",
)
"""The metrics that compare with held-out molecules; `unseen` are those with scaffolds of their own."""


@dataclass(frozen=True)
class Pieces:
    """The BRICS fragments of molecules, and whether these pass all filters (B,)."""

    fragments: Sequence[Sequence[str]]
    passes: np.ndarray

    @classmethod
    def from_smiles(cls, smiles: Sequence[str], threads: int = 1, progress: bool = False) -> "Pieces":
        """A string that RDKit cannot read has no fragment, and does not pass."""
        chunks = descriptors.mapped(_pieces, smiles, threads, progress, "fragments and filters")
        pieces = [piece for chunk in chunks for piece in chunk]
        return cls([names for names, _ in pieces], np.array([passes for _, passes in pieces], bool))


@dataclass(frozen=True)
class HeldOut:
    """Held-out molecules that samples are compared with: neighbours, counts of fragments and of scaffolds."""

    neighbours: Neighbours
    fragments: Counter[str]
    scaffolds: Counter[str]


def describe_held_out(
    smiles: Sequence[str], training: TrainingMolecules, threads: int = 1, progress: bool = False
) -> dict[str, HeldOut]:
    """All molecules as `held_out`, and those whose scaffold no training molecule has as `unseen`."""
    fingerprints, names = descriptors.structures(smiles, threads, progress)
    scaffolds = np.array(names, dtype=object)
    fragments = Pieces.from_smiles(smiles, threads, progress).fragments
    unseen = np.array([name != "" and name not in training.scaffolds for name in names], bool)
    return {
        part: HeldOut(Neighbours(fingerprints[rows]), _count(fragments, rows), Counter(scaffolds[rows]))
        for part, rows in (("held_out", np.arange(len(names))), ("unseen", np.flatnonzero(unseen)))
        if len(rows)
    }


def compare(
    molecules: DescribedMolecules, pieces: Pieces, rows: np.ndarray, held_out: dict[str, HeldOut]
) -> dict[str, float]:
    """Metrics of the molecules of distinct `rows`; NaN where there are too few of them.

    - `internal_diversity_2`: 1 - root of the mean square of Tanimoto's similarity over their pairs.
    - `filters`: the share of them that passes all filters.
    - `<part>_similarity`: mean over them of the similarity to the nearest of a part of the held-out ones.
    - `<part>_fragments`, `<part>_scaffolds`: cosine of the angle between the counts of BRICS fragments, or of
      Bemis-Murcko scaffolds (molecules without rings left out), of both.
    """
    chosen = molecules[rows]
    values = {
        "internal_diversity_2": root_mean_square_diversity(chosen.fingerprints),
        "filters": float(pieces.passes[rows].mean()) if len(rows) else np.nan,
    }
    fragments, scaffolds = _count(pieces.fragments, rows), Counter(chosen.scaffolds)
    for part, others in held_out.items():
        nearest = others.neighbours.similarity(chosen.fingerprints)
        values |= {
            f"{part}_similarity": float(nearest.mean()) if len(rows) else np.nan,
            f"{part}_fragments": cosine(fragments, others.fragments),
            f"{part}_scaffolds": cosine(scaffolds, others.scaffolds),
        }
    return values


def cosine(one: Counter[str], other: Counter[str]) -> float:
    """Cosine of the angle between two vectors of counts, the empty name left out; NaN if one is zero."""
    names = [name for name in one | other if name]
    first, second = (np.array([them[name] for name in names], float) for them in (one, other))
    norms, product = (np.linalg.norm(first), np.linalg.norm(second)), first @ second
    return float(product / np.prod(norms)) if all(norms) else np.nan


def _count(fragments: Sequence[Sequence[str]], rows: np.ndarray) -> Counter[str]:
    return Counter(name for row in rows for name in fragments[row])


def _pieces(smiles: Sequence[str]) -> list[tuple[list[str], bool]]:
    with rdBase.BlockLogs():
        return [
            ([], False) if molecule is None else (_fragments(molecule), not _catalogue().HasMatch(molecule))
            for molecule in map(Chem.MolFromSmiles, smiles)
        ]


def _fragments(molecule: Chem.Mol) -> list[str]:
    """A molecule's pieces after cuts at all BRICS bonds (Degen et al. 2008), with dummy atoms at the cuts."""
    return Chem.MolToSmiles(BRICS.BreakBRICSBonds(molecule)).split(".")


@cache
def _catalogue() -> FilterCatalog:
    parameters = FilterCatalogParams()
    for name in FILTERS:
        parameters.AddCatalog(getattr(FilterCatalogParams.FilterCatalogs, name))
    return FilterCatalog(parameters)
