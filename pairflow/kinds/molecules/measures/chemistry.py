"""Computes metrics of the molecules of one trial (one set of samples), compared with real molecules.

See docs/method.md, "Molecule metrics".

Only distinct valid molecules are compared: those with the same canonical SMILES (the one text that RDKit
writes for a molecule) count once, in samples and in the training set.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from rdkit.Chem.Scaffolds import MurckoScaffold

from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.structures.descriptors import PROPERTIES, STRUCTURES, tabulate
from pairflow.kinds.molecules.structures.similarity import Neighbours, internal_diversity

REFERENCES = {  # metric -> the molecules that it compares with
    **dict.fromkeys(["nn_similarity", "novel_scaffolds", "fcd"], "train"),
    **dict.fromkeys(["common_scaffolds", "common_frameworks"], "train"),
    **{f"{name}_wasserstein": "train" for name in PROPERTIES},
}
CORES = 10  # number of scaffolds that count as common, the most frequent ones of training molecules
_BINS = 30


@dataclass(frozen=True)
class TrainingMolecules:
    """The training molecules that samples are compared with.

    `neighbours` has the fingerprints of M distinct molecules, and `scaffolds` maps each scaffold of theirs to
    the number of molecules with it (an empty scaffold: without rings). `properties` (R, 4) has the PROPERTIES
    of R <= M of the molecules.
    """

    neighbours: Neighbours
    scaffolds: Mapping[str, int]
    properties: np.ndarray


def distinct(strings: Iterable[str]) -> dict[str, str]:
    """Map the canonical SMILES of each valid molecule among `strings` to one spelling of it there: the first
    in alphabetical order.

    Properties are computed from that spelling, because RDKit cannot read back every canonical SMILES that it
    writes.
    """
    spellings: dict[str, str] = {}
    for text in sorted(set(strings)):
        molecule = canonical(text)
        if molecule is not None:
            spellings.setdefault(molecule, text)
    return spellings


def describe_samples(
    strings: Iterable[str],
    training: TrainingMolecules,
    further: Sequence[str] = (),
    threads: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Describe the distinct valid molecules among `strings` in a table with a row for each, indexed by
    canonical SMILES. Its columns are PROPERTIES (such as logP), STRUCTURES (fingerprint and scaffold), the
    `further` descriptors, and `nearest`, the similarity to the nearest training molecule."""
    spellings = distinct(strings)
    names = dict.fromkeys([*PROPERTIES, *STRUCTURES, *further])
    molecules = tabulate([*names], [*spellings.values()], threads, progress).set_axis([*spellings])
    return molecules.assign(nearest=training.neighbours.similarity(molecules["fingerprint"]))


def properties_of(molecules: pd.DataFrame) -> np.ndarray:
    """Return the PROPERTIES of B molecules as an array (B, 4), from a table with a column for each
    property."""
    return molecules[[*PROPERTIES]].to_numpy(np.float64)


def compare(molecules: pd.DataFrame, training: TrainingMolecules) -> dict[str, float]:
    """Compute metrics of the distinct molecules of one trial, a table of `describe_samples`. A metric that
    needs more molecules than there are is NaN.

    - `internal_diversity`: 1 - the mean Tanimoto similarity over pairs (Morgan, radius 2, 2,048 bits).
    - `nn_similarity`: the mean similarity to the nearest training molecule.
    - `scaffolds`, `novel_scaffolds`: the number of distinct Bemis-Murcko scaffolds, and of those that no
      training molecule has; a molecule without rings has none.
    - `common_scaffolds`, `common_frameworks`: the numbers of molecules with one of the CORES most frequent
      scaffolds of training molecules, and with the framework of one (see `count_cores`).
    - `<property>_wasserstein`: the Wasserstein-1 distance between the values of a property in these molecules
      and in the training molecules, in the unit of the property.
    """
    from scipy.stats import wasserstein_distance  # slow to import, and sampling imports this module

    scaffolds = set(molecules["scaffold"]) - {""}
    columns = zip(PROPERTIES, properties_of(molecules).T, training.properties.T, strict=True)
    return {
        "internal_diversity": internal_diversity(molecules["fingerprint"]),
        "nn_similarity": molecules["nearest"].mean(),
        "scaffolds": len(scaffolds),
        "novel_scaffolds": len(scaffolds - training.scaffolds.keys()),
        **count_cores(molecules["scaffold"], training.scaffolds),
        **{
            f"{name}_wasserstein": float(wasserstein_distance(*values)) if len(molecules) else np.nan
            for name, *values in columns
        },
    }


def count_cores(scaffolds: Iterable[str], trained: Mapping[str, int]) -> dict[str, int]:
    """Count the molecules with a common scaffold (`common_scaffolds`), and with the framework of a common
    scaffold (`common_frameworks`). Molecules without rings are not counted.

    `scaffolds` has the scaffold of each molecule, and `trained` maps each scaffold to its number of training
    molecules. The CORES most frequent scaffolds of training molecules are common.
    """
    common = sorted(trained.keys() - {""}, key=lambda name: (-trained[name], name))[:CORES]
    frameworks = {framework(name) for name in common}
    counts = Counter(scaffolds)
    return {
        "common_scaffolds": sum(counts[name] for name in common),
        "common_frameworks": sum(
            count for name, count in counts.items() if name and framework(name) in frameworks
        ),
    }


def framework(scaffold: str) -> str:
    """Return the framework of a scaffold (Bemis and Murcko 1996) as SMILES: the scaffold with every atom
    turned into carbon and every bond into a single one. A scaffold that RDKit cannot read, or in which an
    atom has five neighbours, is returned unchanged."""
    with rdBase.BlockLogs(), suppress(ValueError):
        if molecule := Chem.MolFromSmiles(scaffold):
            generic = MurckoScaffold.MakeScaffoldGeneric(molecule)
            return Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(generic))
    return scaffold


def histograms(properties: np.ndarray, training: np.ndarray) -> pd.DataFrame:
    """Count samples and training molecules in bins of each property, from properties (B, 4) and (R, 4).

    Columns: property, low, high (low <= value < high), samples, training (numbers of molecules). Bins of
    equal width span the training values; one more bin at each end, with an infinite bound, counts the rest.
    """
    tables = []
    for name, *columns in zip(PROPERTIES, properties.T, training.T, strict=True):
        edges = np.histogram_bin_edges(columns[1], _BINS)
        edges[-1] = np.nextafter(edges[-1], np.inf)  # the largest training value is inside
        edges = np.concatenate([[-np.inf], edges, [np.inf]])
        samples, known = (np.histogram(values, edges)[0] for values in columns)
        bins = {"low": edges[:-1], "high": edges[1:], "samples": samples, "training": known}
        tables.append(pd.DataFrame({"property": name, **bins}))
    return pd.concat(tables, ignore_index=True)
