"""Computes metrics of the molecules of one trial (one set of samples), compared with real molecules.

See docs/method.md, "Molecule metrics".

Only distinct valid molecules are compared: those with the same canonical SMILES (the one text that RDKit
writes for a molecule) count once, in samples and in the training set. Like MOSES (Polykovskiy et al. 2020),
`compare_as_moses` uses two sets of held-out molecules: all, and those with a scaffold (the rings and what
links them) that no training molecule has. Unlike in MOSES, fingerprints have 2,048 bits, and the filters are
RDKit's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from rdkit.Chem.Scaffolds import MurckoScaffold

from pairflow.kinds.molecules.counts import canonical
from pairflow.kinds.molecules.descriptors import PIECES, PROPERTIES, STRUCTURES, tabulate
from pairflow.kinds.molecules.similarity import Neighbours, internal_diversity, root_mean_square_diversity

_PARTS = ("held_out", "unseen")  # all held-out molecules; those with a scaffold that the training set lacks
REFERENCES = {  # metric -> the molecules that it compares with
    **dict.fromkeys(["nn_similarity", "novel_scaffolds", "fcd"], "train"),
    **dict.fromkeys(["common_scaffolds", "common_frameworks"], "train"),
    **{f"{name}_wasserstein": "train" for name in PROPERTIES},
    **{f"{part}_{kind}": "test" for part in _PARTS for kind in ("similarity", "fragments", "scaffolds")},
}
LARGEST_RING = 8  # atoms in a ring of a useful molecule; larger rings are almost always a model's mistakes
CORES = 10  # number of scaffolds that count as common, the most frequent ones of training molecules
MIDDLE = (0.05, 0.95)  # quantiles of training molecules between which properties of useful molecules lie
_BINS = 30


@dataclass(frozen=True)
class TrainingMolecules:
    """The training molecules that samples are compared with.

    `neighbours` has the fingerprints of M distinct molecules, and `scaffolds` the number of them with each
    scaffold (empty for a molecule without rings). `properties` (R, 4) describes R <= M of them.
    """

    neighbours: Neighbours
    scaffolds: Mapping[str, int]
    properties: np.ndarray


def distinct(strings: Iterable[str]) -> dict[str, str]:
    """Map the canonical SMILES of each valid molecule among `strings` to the first of its sorted spellings.

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
    """Describe the molecules of `distinct` in a table with a row for each, indexed by canonical SMILES. Its
    columns are properties, structures, `largest_ring`, the `further` descriptors, and `nearest`, the
    similarity to the nearest training molecule."""
    spellings = distinct(strings)
    names = dict.fromkeys([*PROPERTIES, *STRUCTURES, "largest_ring", *further])
    molecules = tabulate([*names], [*spellings.values()], threads, progress).set_axis([*spellings])
    return molecules.assign(nearest=training.neighbours.similarity(molecules["fingerprint"]))


def properties_of(molecules: pd.DataFrame) -> np.ndarray:
    """The properties of the B molecules of a table, as an array (B, 4)."""
    return molecules[[*PROPERTIES]].to_numpy(np.float64)


def count_connected(strings: Iterable[str]) -> int:
    """The number of valid strings that are a single connected molecule."""
    return sum(molecule is not None and "." not in molecule for molecule in map(canonical, strings))


def are_useful(
    molecules: pd.DataFrame, training: TrainingMolecules, known: Set[str]
) -> dict[str, np.ndarray]:
    """Find the useful molecules of a table, in two senses. Returns two arrays (B,) of bool.

    - `useful`: the molecule is not in `known` (canonical SMILES), has no ring of more than LARGEST_RING atoms
      (RDKit's smallest set of smallest rings), and its QED and logP lie between the quantiles MIDDLE of the
      training molecules, bounds included.
    - `useful_strict`: the same for all of PROPERTIES. Random SELFIES are often `useful`, but seldom this.
    """
    useful = np.array([name not in known for name in molecules.index], bool)
    useful &= molecules["largest_ring"].to_numpy(np.int64) <= LARGEST_RING
    low, high = np.quantile(training.properties, MIDDLE, axis=0)
    properties = properties_of(molecules)
    usual = (low <= properties) & (properties <= high)
    loose = [PROPERTIES.index(name) for name in ("qed", "logp")]
    return {"useful": useful & usual[:, loose].all(axis=1), "useful_strict": useful & usual.all(axis=1)}


def compare(molecules: pd.DataFrame, training: TrainingMolecules) -> dict[str, float]:
    """Compute metrics of the molecules of one trial, a table of `describe_samples`; NaN for too few.

    - `internal_diversity`: 1 - the mean Tanimoto similarity over pairs (Morgan, radius 2, 2,048 bits).
    - `nn_similarity`: the mean similarity to the nearest training molecule.
    - `scaffolds`, `novel_scaffolds`: the number of distinct Bemis-Murcko scaffolds, and of those that no
      training molecule has; a molecule without rings has none.
    - `common_scaffolds`, `common_frameworks`: see `count_cores`.
    - `<property>_wasserstein`: the Wasserstein-1 distance between the values of a property in these molecules
      and in the training molecules, in the unit of the property.
    """
    from scipy.stats import wasserstein_distance  # slow to import, and sampling imports this module

    scaffolds = set(molecules["scaffold"]) - {""}
    columns = zip(PROPERTIES, properties_of(molecules).T, training.properties.T, strict=True)
    return {
        "internal_diversity": internal_diversity(molecules["fingerprint"]),
        "nn_similarity": _mean(molecules["nearest"]),
        "scaffolds": len(scaffolds),
        "novel_scaffolds": len(scaffolds - training.scaffolds.keys()),
        **count_cores(molecules["scaffold"], training.scaffolds),
        **{
            f"{name}_wasserstein": float(wasserstein_distance(*values)) if len(molecules) else np.nan
            for name, *values in columns
        },
    }


def count_cores(scaffolds: Iterable[str], trained: Mapping[str, int]) -> dict[str, int]:
    """Count the molecules with a common scaffold of training molecules, or with the framework of one.
    `scaffolds` has the scaffold of each molecule, and `trained` maps scaffolds to numbers of training
    molecules. The CORES most frequent are common. Molecules without rings are not counted."""
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
    """Return the framework of a scaffold (Bemis and Murcko 1996): all atoms are carbon, all bonds single. A
    scaffold that RDKit cannot read, or in which an atom has five neighbours, is returned unchanged."""
    with rdBase.BlockLogs(), suppress(ValueError):
        if molecule := Chem.MolFromSmiles(scaffold):
            generic = MurckoScaffold.MakeScaffoldGeneric(molecule)
            return Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(generic))
    return scaffold


def _mean(values: Sequence[float] | pd.Series) -> float:
    """The mean of the values, or NaN if there are none."""
    return float(np.mean(np.asarray(values, np.float64))) if len(values) else np.nan


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


def describe_held_out(
    smiles: Sequence[str], training: TrainingMolecules, threads: int = 1, progress: bool = False
) -> dict[str, pd.DataFrame]:
    """Describe held-out molecules in tables of structures and pieces; an empty table is left out. The table
    `held_out` has all of them, `unseen` only those with a scaffold that no training molecule has."""
    molecules = tabulate((*STRUCTURES, *PIECES), smiles, threads, progress)
    unseen = molecules[~molecules["scaffold"].isin(["", *training.scaffolds])]
    return {part: rows for part, rows in zip(_PARTS, (molecules, unseen), strict=True) if len(rows)}


def compare_as_moses(molecules: pd.DataFrame, held_out: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Compute the metrics of MOSES on molecules of one trial, a table of `describe_samples`; NaN for too few.

    `held_out` has the tables, or parts, of `describe_held_out`.

    - `internal_diversity_2`: 1 - the root mean square of the Tanimoto similarity over pairs of the molecules.
    - `filters`: the share of molecules that pass all filters.
    - `<part>_similarity`: the mean similarity to the nearest molecule of a part.
    - `<part>_fragments`, `<part>_scaffolds`: the cosine between the counts of BRICS fragments, or of
      Bemis-Murcko scaffolds, in these molecules and in a part. Molecules without rings have no scaffold.
    """
    values = {
        "internal_diversity_2": root_mean_square_diversity(molecules["fingerprint"]),
        "filters": _mean(molecules["passes"]),
    }
    fragments, scaffolds = _count_pieces(molecules)
    for part, others in held_out.items():
        nearest = Neighbours(others["fingerprint"]).similarity(molecules["fingerprint"])
        their_fragments, their_scaffolds = _count_pieces(others)
        values |= {
            f"{part}_similarity": _mean(nearest),
            f"{part}_fragments": cosine(fragments, their_fragments),
            f"{part}_scaffolds": cosine(scaffolds, their_scaffolds),
        }
    return values


def _count_pieces(molecules: pd.DataFrame) -> tuple[Counter[str], Counter[str]]:
    """Count how often each fragment and each scaffold occurs in a table of molecules."""
    return Counter(chain(*molecules["fragments"])), Counter(molecules["scaffold"])


def cosine(one: Counter[str], other: Counter[str]) -> float:
    """The cosine of the angle between two vectors of counts by name; NaN if one is all zero. The empty name,
    which stands for molecules without rings, is left out."""
    names = [name for name in one | other if name]
    first, second = (np.array([them[name] for name in names], float) for them in (one, other))
    norms, product = (np.linalg.norm(first), np.linalg.norm(second)), first @ second
    return float(product / np.prod(norms)) if all(norms) else np.nan
