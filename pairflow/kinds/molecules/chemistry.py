"""Metrics of the distinct valid molecules of one trial: how diverse, how new, how like the training set.

See docs/method.md, "Molecule metrics".

Molecules are distinct by their canonical SMILES: samples and training molecules count once each.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from scipy.stats import wasserstein_distance

from pairflow.kinds.molecules import descriptors
from pairflow.kinds.molecules.counts import canonical
from pairflow.kinds.molecules.similarity import Neighbours, internal_diversity

REFERENCES = dict.fromkeys(
    ["nn_similarity", "novel_scaffolds", *(f"{name}_wasserstein" for name in descriptors.PROPERTIES)], "train"
)
"""The metrics that compare with the training molecules."""

LARGEST_RING = 8  # atoms; larger rings of a useful molecule are almost always a model's mistakes
MIDDLE = (0.05, 0.95)  # quantiles of the training molecules' properties that bound a useful molecule's

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
    useful &= np.array([_largest_ring(text) <= LARGEST_RING for text in spellings.values()], bool)
    low, high = np.quantile(training.properties, MIDDLE, axis=0)
    usual = (low <= properties) & (properties <= high)
    loose = [[*descriptors.PROPERTIES].index(name) for name in ("qed", "logp")]
    return {"useful": useful & usual[:, loose].all(axis=1), "useful_strict": useful & usual.all(axis=1)}


def _largest_ring(smiles: str) -> int:
    """The number of atoms of a molecule's largest ring; 0 without rings."""
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)  # it must outlive its rings
    return max(map(len, molecule.GetRingInfo().AtomRings()), default=0)


def compare(molecules: DescribedMolecules, training: TrainingMolecules) -> dict[str, float]:
    """Metrics of one trial's distinct valid molecules; NaN where there are too few of them.

    - `internal_diversity`: 1 - mean Tanimoto similarity over their pairs (Morgan, radius 2, 2,048 bits).
    - `nn_similarity`: mean over them of the similarity to the nearest of all training molecules.
    - `scaffolds`, `novel_scaffolds`: distinct Bemis-Murcko scaffolds, and those of them that no training
      molecule has; a molecule without rings has none.
    - `<property>_wasserstein`: Wasserstein-1 distance between their values of a property and those of the
      training molecules, in the property's own unit.
    """
    scaffolds = set(molecules.scaffolds) - {""}
    columns = zip(descriptors.PROPERTIES, molecules.properties.T, training.properties.T, strict=True)
    return {
        "internal_diversity": internal_diversity(molecules.fingerprints),
        "nn_similarity": float(molecules.nearest.mean()) if len(molecules.nearest) else np.nan,
        "scaffolds": len(scaffolds),
        "novel_scaffolds": len(scaffolds - training.scaffolds),
        **{f"{name}_wasserstein": _distance(*values) for name, *values in columns},
    }


def histograms(properties: np.ndarray, training: np.ndarray) -> pd.DataFrame:
    """Rows property, low, high, samples, training: how many molecules have a value from low to below high.

    The bins are alike in width and span the training molecules' values (R, 4); the samples' (B, 4) below and
    above are in a first and a last bin that are open: low or high is infinite.
    """
    return pd.concat(
        [
            _histogram(*values).assign(property=name)
            for name, *values in zip(descriptors.PROPERTIES, properties.T, training.T, strict=True)
        ],
        ignore_index=True,
    )[["property", "low", "high", "samples", "training"]]


def _histogram(samples: np.ndarray, training: np.ndarray) -> pd.DataFrame:
    edges = np.histogram_bin_edges(training, _BINS)
    edges[-1] = np.nextafter(edges[-1], np.inf)  # the largest training value is inside
    edges = np.concatenate([[-np.inf], edges, [np.inf]])

    def count(values: np.ndarray) -> np.ndarray:
        return np.bincount(np.searchsorted(edges, values, side="right") - 1, minlength=len(edges) - 1)

    return pd.DataFrame(
        {"low": edges[:-1], "high": edges[1:], "samples": count(samples), "training": count(training)}
    )


def _distance(samples: np.ndarray, training: np.ndarray) -> float:
    return float(wasserstein_distance(samples, training)) if len(samples) else np.nan
