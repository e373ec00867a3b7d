"""Metrics of the distinct valid molecules of one trial: how diverse, how new, how like the training set.

See docs/method.md, "Molecule metrics".

Molecules are distinct by their canonical SMILES: samples and training molecules count once each. As MOSES
does (Polykovskiy et al. 2020), `compare_as_moses` takes all held-out molecules, and those whose scaffold no
training molecule has; here fingerprints have 2,048 bits, and the filters are RDKit's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from rdkit.Chem import BRICS
from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams
from scipy.stats import wasserstein_distance

from pairflow.kinds.molecules import descriptors
from pairflow.kinds.molecules.counts import canonical
from pairflow.kinds.molecules.similarity import Neighbours, internal_diversity, root_mean_square_diversity

_PARTS = ("held_out", "unseen")  # of the held-out molecules: all, and those with scaffolds of their own
REFERENCES = {  # metric -> the molecules that it compares with
    **dict.fromkeys(["nn_similarity", "novel_scaffolds", "fcd"], "train"),
    **{f"{name}_wasserstein": "train" for name in descriptors.PROPERTIES},
    **{f"{part}_{kind}": "test" for part in _PARTS for kind in ("similarity", "fragments", "scaffolds")},
}
LARGEST_RING = 8  # atoms; larger rings of a useful molecule are almost always a model's mistakes
MIDDLE = (0.05, 0.95)  # quantiles of the training molecules' properties that bound a useful molecule's

FILTERS = ("PAINS", "NIH")
"""RDKit's catalogues of groups that disturb assays, or are reactive (Baell and Holloway 2010; Jadhav et al.
2010, Doveston et al. 2015)."""
_BINS = 30


@dataclass(frozen=True)
class TrainingMolecules:
    """The training molecules that samples are compared with.

    `neighbours` and `scaffolds` (empty: no ring) cover all M distinct molecules, as `descriptors.structures`
    describes them; `properties` (R, 4) cover R <= M of them.
    """

    neighbours: Neighbours
    scaffolds: Set[str]
    properties: np.ndarray


@dataclass(frozen=True)
class DescribedMolecules:
    """Molecules: scaffolds (B,), fingerprints (B, 32), properties (B, 4), nearest similarity (B,)."""

    scaffolds: np.ndarray
    fingerprints: np.ndarray
    properties: np.ndarray
    nearest: np.ndarray

    @classmethod
    def from_smiles(
        cls, smiles: Sequence[str], training: TrainingMolecules, threads: int = 1, progress: bool = False
    ) -> "DescribedMolecules":
        fingerprints, scaffolds = descriptors.structures(smiles, threads, progress)
        properties = descriptors.properties(smiles, threads, progress)
        nearest = training.neighbours.similarity(fingerprints)
        return cls(np.array(scaffolds, dtype=object), fingerprints, properties, nearest)

    def __getitem__(self, rows: np.ndarray) -> "DescribedMolecules":
        return DescribedMolecules(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def distinct(strings: Iterable[str]) -> dict[str, str]:
    """The valid molecules among strings: canonical SMILES -> the first of its spellings, in sorted order.

    Molecules are described from a spelling, as RDKit cannot read back every canonical SMILES that it writes.
    """
    spellings: dict[str, str] = {}
    for text in sorted(set(strings)):
        molecule = canonical(text)
        if molecule is not None:
            spellings.setdefault(molecule, text)
    return spellings


def count_connected(strings: Iterable[str]) -> int:
    """The number of valid samples that are a single connected molecule."""
    return sum(molecule is not None and "." not in molecule for molecule in map(canonical, strings))


def are_useful(
    spellings: Mapping[str, str], properties: np.ndarray, training: TrainingMolecules, known: Set[str]
) -> dict[str, np.ndarray]:
    """Whether each molecule of `distinct`, with properties (B, 4), is useful: two arrays (B,) of bool.

    - `useful`: it is not among the canonical SMILES `known`, has no ring of more than LARGEST_RING atoms
      (RDKit's smallest set of smallest rings), and its QED and logP lie within the quantiles MIDDLE of the
      training molecules', bounds included.
    - `useful_strict`: so do all its properties. Many SELFIES of random symbols are useful by the former.
    """
    useful = np.array([name not in known for name in spellings], bool)
    with rdBase.BlockLogs():
        molecules = [Chem.MolFromSmiles(text) for text in spellings.values()]  # they must outlive their rings
    sizes = [max(map(len, molecule.GetRingInfo().AtomRings()), default=0) for molecule in molecules]
    useful &= np.array(sizes, np.int64) <= LARGEST_RING
    low, high = np.quantile(training.properties, MIDDLE, axis=0)
    usual = (low <= properties) & (properties <= high)
    loose = [[*descriptors.PROPERTIES].index(name) for name in ("qed", "logp")]
    return {"useful": useful & usual[:, loose].all(axis=1), "useful_strict": useful & usual.all(axis=1)}


def compare(molecules: DescribedMolecules, training: TrainingMolecules) -> dict[str, float]:
    """Metrics of one trial's distinct valid molecules; NaN where there are too few of them.

    - `internal_diversity`: 1 - mean Tanimoto similarity over their pairs (Morgan, radius 2, 2,048 bits).
    - `nn_similarity`: mean over them of the similarity to the nearest of all training molecules.
    - `scaffolds`, `novel_scaffolds`: distinct Bemis-Murcko scaffolds, and those of them that no training
      molecule has; a molecule without rings has none.
    - `<property>_wasserstein`: Wasserstein-1 distance between their values of a property and those of the
      training molecules, in the property's own unit.
    """
    scaffolds, some = set(molecules.scaffolds) - {""}, len(molecules.nearest) > 0
    columns = zip(descriptors.PROPERTIES, molecules.properties.T, training.properties.T, strict=True)
    return {
        "internal_diversity": internal_diversity(molecules.fingerprints),
        "nn_similarity": float(molecules.nearest.mean()) if some else np.nan,
        "scaffolds": len(scaffolds),
        "novel_scaffolds": len(scaffolds - training.scaffolds),
        **{
            f"{name}_wasserstein": float(wasserstein_distance(*values)) if some else np.nan
            for name, *values in columns
        },
    }


def histograms(properties: np.ndarray, training: np.ndarray) -> pd.DataFrame:
    """Rows property, low, high, samples, training: how many molecules have a value from low to below high.

    The bins are alike in width and span the training molecules' values (R, 4); the samples' (B, 4) below and
    above are in a first and a last bin that are open: low or high is infinite.
    """
    tables = []
    for name, *columns in zip(descriptors.PROPERTIES, properties.T, training.T, strict=True):
        edges = np.histogram_bin_edges(columns[1], _BINS)
        edges[-1] = np.nextafter(edges[-1], np.inf)  # the largest training value is inside
        edges = np.concatenate([[-np.inf], edges, [np.inf]])
        samples, known = (
            np.bincount(np.searchsorted(edges, values, side="right") - 1, minlength=len(edges) - 1)
            for values in columns
        )
        bins = {"low": edges[:-1], "high": edges[1:], "samples": samples, "training": known}
        tables.append(pd.DataFrame({"property": name, **bins}))
    return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True)
class Pieces:
    """The BRICS fragments of molecules, and whether these pass all filters (B,)."""

    fragments: Sequence[Sequence[str]]
    passes: np.ndarray

    @classmethod
    def from_smiles(cls, smiles: Sequence[str], threads: int = 1, progress: bool = False) -> "Pieces":
        """A string that RDKit cannot read has no fragment, and does not pass."""
        pieces = descriptors.mapped(_pieces, smiles, threads, progress, "fragments and filters")
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
        part: HeldOut(
            Neighbours(fingerprints[rows]), _count_fragments(fragments, rows), Counter(scaffolds[rows])
        )
        for part, rows in (("held_out", np.arange(len(names))), ("unseen", np.flatnonzero(unseen)))
        if len(rows)
    }


def compare_as_moses(
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
    fragments, scaffolds = _count_fragments(pieces.fragments, rows), Counter(chosen.scaffolds)
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


def _count_fragments(fragments: Sequence[Sequence[str]], rows: np.ndarray) -> Counter[str]:
    return Counter(name for row in rows for name in fragments[row])


def _pieces(molecule: Chem.Mol | None) -> tuple[list[str], bool]:
    """The pieces after cuts at all BRICS bonds (Degen et al. 2008), with dummy atoms at the cuts; whether the
    molecule passes the filters."""
    if molecule is None:
        return [], False
    fragments = Chem.MolToSmiles(BRICS.BreakBRICSBonds(molecule)).split(".")
    return fragments, not _catalogue().HasMatch(molecule)


@cache
def _catalogue() -> FilterCatalog:
    parameters = FilterCatalogParams()
    for name in FILTERS:
        parameters.AddCatalog(getattr(FilterCatalogParams.FilterCatalogs, name))
    return FilterCatalog(parameters)
