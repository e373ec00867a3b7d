"""Metrics of the distinct valid molecules of one trial: how diverse, how new, how like the training set.

See docs/method.md, "Molecule metrics".

Molecules are distinct by their canonical SMILES: samples and training molecules count once each. As MOSES
does (Polykovskiy et al. 2020), `compare_as_moses` takes all held-out molecules, and those whose scaffold no
training molecule has; here fingerprints have 2,048 bits, and the filters are RDKit's.
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
from scipy.stats import wasserstein_distance

from pairflow.kinds.molecules.counts import canonical
from pairflow.kinds.molecules.descriptors import PIECES, PROPERTIES, STRUCTURES, tabulate
from pairflow.kinds.molecules.similarity import Neighbours, internal_diversity, root_mean_square_diversity

_PARTS = ("held_out", "unseen")  # of the held-out molecules: all, and those with scaffolds of their own
REFERENCES = {  # metric -> the molecules that it compares with
    **dict.fromkeys(["nn_similarity", "novel_scaffolds", "fcd"], "train"),
    **dict.fromkeys(["common_scaffolds", "common_frameworks"], "train"),
    **{f"{name}_wasserstein": "train" for name in PROPERTIES},
    **{f"{part}_{kind}": "test" for part in _PARTS for kind in ("similarity", "fragments", "scaffolds")},
}
LARGEST_RING = 8  # atoms; larger rings of a useful molecule are almost always a model's mistakes
CORES = 10  # the most common scaffolds of the training molecules
MIDDLE = (0.05, 0.95)  # quantiles of the training molecules' properties that bound a useful molecule's
_BINS = 30


@dataclass(frozen=True)
class TrainingMolecules:
    """The training molecules that samples are compared with.

    `neighbours` and `scaffolds` (their numbers; empty: no ring) cover all M distinct molecules; `properties`
    (R, 4) cover R <= M of them.
    """

    neighbours: Neighbours
    scaffolds: Mapping[str, int]
    properties: np.ndarray


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


def describe_samples(
    strings: Iterable[str],
    training: TrainingMolecules,
    further: Sequence[str] = (),
    threads: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """A row for each molecule of `distinct`, under its canonical SMILES: its properties, structures,
    `largest_ring`, `further` descriptors, and `nearest`, the similarity to the nearest training molecule."""
    spellings = distinct(strings)
    names = dict.fromkeys([*PROPERTIES, *STRUCTURES, "largest_ring", *further])
    molecules = tabulate([*names], [*spellings.values()], threads, progress).set_axis([*spellings])
    return molecules.assign(nearest=training.neighbours.similarity(molecules["fingerprint"]))


def properties_of(molecules: pd.DataFrame) -> np.ndarray:
    """The properties (B, 4) of described molecules."""
    return molecules[[*PROPERTIES]].to_numpy(np.float64)


def count_connected(strings: Iterable[str]) -> int:
    """The number of valid samples that are a single connected molecule."""
    return sum(molecule is not None and "." not in molecule for molecule in map(canonical, strings))


def are_useful(
    molecules: pd.DataFrame, training: TrainingMolecules, known: Set[str]
) -> dict[str, np.ndarray]:
    """Whether each of the described molecules is useful: two arrays (B,) of bool.

    - `useful`: it is not among the canonical SMILES `known`, has no ring of more than LARGEST_RING atoms
      (RDKit's smallest set of smallest rings), and its QED and logP lie within the quantiles MIDDLE of the
      training molecules', bounds included.
    - `useful_strict`: so do all its properties. Many SELFIES of random symbols are useful by the former.
    """
    useful = np.array([name not in known for name in molecules.index], bool)
    useful &= molecules["largest_ring"].to_numpy(np.int64) <= LARGEST_RING
    low, high = np.quantile(training.properties, MIDDLE, axis=0)
    properties = properties_of(molecules)
    usual = (low <= properties) & (properties <= high)
    loose = [PROPERTIES.index(name) for name in ("qed", "logp")]
    return {"useful": useful & usual[:, loose].all(axis=1), "useful_strict": useful & usual.all(axis=1)}


def compare(molecules: pd.DataFrame, training: TrainingMolecules) -> dict[str, float]:
    """Metrics of one trial's distinct valid molecules, described; NaN where there are too few of them.

    - `internal_diversity`: 1 - mean Tanimoto similarity over their pairs (Morgan, radius 2, 2,048 bits).
    - `nn_similarity`: mean over them of the similarity to the nearest of all training molecules.
    - `scaffolds`, `novel_scaffolds`: distinct Bemis-Murcko scaffolds, and those of them that no training
      molecule has; a molecule without rings has none.
    - `common_scaffolds`, `common_frameworks`: `count_cores`.
    - `<property>_wasserstein`: Wasserstein-1 distance between their values of a property and those of the
      training molecules, in the property's own unit.
    """
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
    """How many of the molecules with these scaffolds have one of the CORES most common scaffolds of the
    training molecules, and how many have the framework of one."""
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
    """The framework of a scaffold (Bemis and Murcko 1996): its rings and what links them, with every atom a
    carbon and every bond single. A scaffold that has none, because RDKit cannot read it or an atom has five
    neighbours, is its own framework."""
    with rdBase.BlockLogs(), suppress(ValueError):
        if molecule := Chem.MolFromSmiles(scaffold):
            generic = MurckoScaffold.MakeScaffoldGeneric(molecule)
            return Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(generic))
    return scaffold


def _mean(values: Sequence[float] | pd.Series) -> float:
    """NaN without values."""
    return float(np.mean(np.asarray(values, np.float64))) if len(values) else np.nan


def histograms(properties: np.ndarray, training: np.ndarray) -> pd.DataFrame:
    """Rows property, low, high, samples, training: how many molecules have a value from low to below high.

    The bins are alike in width and span the training molecules' values (R, 4); the samples' (B, 4) below and
    above are in a first and a last bin that are open: low or high is infinite.
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
    """All molecules as `held_out`, and those whose scaffold no training molecule has as `unseen`: tables of
    structures and pieces."""
    molecules = tabulate((*STRUCTURES, *PIECES), smiles, threads, progress)
    unseen = molecules[~molecules["scaffold"].isin(["", *training.scaffolds])]
    return {part: rows for part, rows in zip(_PARTS, (molecules, unseen), strict=True) if len(rows)}


def compare_as_moses(molecules: pd.DataFrame, held_out: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Metrics of one trial's distinct valid molecules, described; NaN where there are too few of them.

    - `internal_diversity_2`: 1 - root of the mean square of Tanimoto's similarity over their pairs.
    - `filters`: the share of them that passes all filters.
    - `<part>_similarity`: mean over them of the similarity to the nearest of a part of the held-out ones.
    - `<part>_fragments`, `<part>_scaffolds`: cosine of the angle between the counts of BRICS fragments, or of
      Bemis-Murcko scaffolds (molecules without rings left out), of both.
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
    """How often each fragment and each scaffold occurs."""
    return Counter(chain(*molecules["fragments"])), Counter(molecules["scaffold"])


def cosine(one: Counter[str], other: Counter[str]) -> float:
    """Cosine of the angle between two vectors of counts, the empty name left out; NaN if one is zero."""
    names = [name for name in one | other if name]
    first, second = (np.array([them[name] for name in names], float) for them in (one, other))
    norms, product = (np.linalg.norm(first), np.linalg.norm(second)), first @ second
    return float(product / np.prod(norms)) if all(norms) else np.nan
