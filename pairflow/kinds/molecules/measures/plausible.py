"""Finds plausible molecules: little in them is new compared with a library, and they have no rare alert.

See docs/metrics.md, `plausible`. An alert is an unwanted group of atoms. What is usual in a library is found
once and saved as `Norms`: the number of training molecules with each ring system, and with each atom (its
bonds and neighbours included), the share with each alert, and the limit of each measure. Atoms and alerts
that are usual in ZINC-250k are usual everywhere.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from rdkit import Chem

from pairflow.artifacts import read_table
from pairflow.errors import InputError
from pairflow.kinds.molecules.measures.counts import canonical, count
from pairflow.kinds.molecules.measures.training_molecules import DatasetMolecules, some
from pairflow.kinds.molecules.structures.descriptors import CHEMBL, DESCRIPTORS, alerts, tabulate

SHARE = 0.95  # share of the library's molecules that are within each limit
ROWS = 2000  # the limits are found from at most this number of molecules
ALERT_ROWS = 10_000  # alerts, which take long, are counted in at most this number of molecules
ENOUGH = 2  # heteroatoms; more do not count
DRAWN = 1000  # most held-out molecules, and most molecules of each control
STAGES = {  # stage -> measures that must be within their limits; the quick ones first
    "usual_size": ("smallness", "few_heteroatoms"),
    "usual_rings": ("new_rings", "largest_ring"),
    "usual_atoms": ("new_atoms",),
    "few_alerts": ("rarity", "severity"),
    "plausible": ("sa",),
}
PARTS = ("ring_systems", "surroundings")
_OTHERS = ("heavy_atoms", "heteroatoms", "largest_ring", "sa")
DESCRIBED = (*_OTHERS, *PARTS)  # the descriptors that `survive` needs
_COUNTED = ("valid", "unique_strict", "novel_strict")
ONE_CARBON_MORE, INDEPENDENT, START = "one carbon more", "independent symbols", "the start, untrained"
KIND = "norms"  # the kind of file
_USUAL_ATOMS, _USUAL_ALERTS = (  # by benchmarks/usual_atoms.py
    Path(__file__).with_name(name) for name in ("usual_atoms.parquet", "usual_alerts.parquet")
)


class Norms(NamedTuple):
    """What is usual in a library of molecules.

    Attributes:
        rings: the SMILES of each ring system, with the number of training molecules that have it.
        atoms: a hash of each atom with its bonds and neighbours, with the number of molecules that have it.
        alerts: each alert (an unwanted group), with the share of molecules that have it.
        limits: the largest usual value of each measure.
    """

    rings: Mapping[str, int]
    atoms: Mapping[int, int]
    alerts: Mapping[str, float]
    limits: Mapping[str, float]

    @classmethod
    def read(cls, path: Path) -> "Norms":
        """Read norms from the file `path`, in which `table` was saved. Raises InputError if the file is
        missing or has other content."""
        frame = read_table(path, KIND)[0].to_pandas()
        parts = [
            frame[frame.what == what].set_index("name")["value"].to_dict()
            for what in ("ring system", "atom", "alert", "limit")
        ]
        whole = len(frame) == sum(map(len, parts))  # nothing is counted twice, or unknown
        rings, atoms, alerts, limits = parts
        counts = [*rings.values(), *atoms.values()]
        known = set(limits) == set(MEASURES) and all(name.isdecimal() for name in atoms)
        counted = all(value >= 1 and value % 1 == 0 for value in counts)
        if not (whole and known and counted and all(0 < share <= 1 for share in alerts.values())):
            raise InputError(f"{path}: not the norms of molecules; make them again with `pairflow norms`")
        return cls(rings, {int(name): count for name, count in atoms.items()}, alerts, limits)

    def table(self) -> pa.Table:
        named: dict[str, Mapping[Any, float]] = {
            "ring system": self.rings,
            "atom": self.atoms,
            "alert": self.alerts,
            "limit": self.limits,
        }
        rows = [
            (what, str(name), float(value))
            for what, values in named.items()
            for name, value in values.items()
        ]
        return pa.Table.from_pandas(pd.DataFrame(sorted(rows), columns=["what", "name", "value"]))


# measure -> the descriptor that it follows from, and how; each has an upper limit
MEASURES: dict[str, tuple[str, Callable[[Any, Norms], float]]] = {
    "smallness": ("heavy_atoms", lambda number, norms: -number),
    "new_rings": ("ring_systems", lambda systems, norms: _count_new(systems, norms.rings)),
    "new_atoms": ("surroundings", lambda atoms, norms: _count_new(_unusual(atoms), norms.atoms)),
    "largest_ring": ("largest_ring", lambda size, norms: size),
    "few_heteroatoms": ("heteroatoms", lambda number, norms: -min(number, ENOUGH)),
    "rarity": ("alerts", lambda names, norms: _rarity(names, norms.alerts)),
    "severity": ("severity", lambda score, norms: score),
    "sa": ("sa", lambda score, norms: score),
}


def measure(name: str, molecule: Chem.Mol, norms: Norms) -> float:
    """Return the measure `name`, one of MEASURES, of a molecule. `norms` says what is usual in the
    library."""
    descriptor, compute = MEASURES[name]
    return compute(DESCRIPTORS[descriptor](molecule), norms)


def measure_all(name: str, molecules: pd.DataFrame, norms: Norms) -> np.ndarray:
    """Return the measure `name`, one of MEASURES, of M molecules (M,), from a table of their descriptors."""
    descriptor, compute = MEASURES[name]
    return np.array([compute(value, norms) for value in molecules[descriptor]], float)


def is_plausible(molecule: Chem.Mol, norms: Norms) -> bool:
    """Return whether all measures of a molecule are within the limits of `norms`. Novelty is not tested."""
    return all(measure(name, molecule, norms) <= norms.limits[name] for name in chain(*STAGES.values()))


def describe_oddities(molecule: Chem.Mol, norms: Norms) -> dict[str, Any]:
    """Describe what is odd in a molecule, by column: `plausible` (yes or no), `new_rings` and `new_atoms`
    (numbers), `severity` (NIBR's score), and the names of `alerts` and `chembl_alerts`. ChEMBL's alerts have
    no influence on `plausible`."""
    values = {name: measure(name, molecule, norms) for name in MEASURES}
    within = all(value <= norms.limits[name] for name, value in values.items())
    shown = {name: values[name] for name in ("new_rings", "new_atoms", "severity")}
    named = {"alerts": alerts(molecule), "chembl_alerts": alerts(molecule, CHEMBL)}
    texts = {column: "; ".join(groups) for column, groups in named.items()}
    return {"plausible": "yes" if within else "no", **shown, **texts}


@cache
def usual_atoms() -> frozenset[int]:
    """Return the hashes of the atoms (bonds and neighbours included, see `surroundings`) that at least five
    of the 249,455 molecules of ZINC-250k have."""
    return frozenset(pd.read_parquet(_USUAL_ATOMS)["atom"].tolist())


@cache
def usual_alerts() -> dict[str, float]:
    """Map each alert (an unwanted group) that occurs in ZINC-250k to its share of the molecules there."""
    return pd.read_parquet(_USUAL_ALERTS).set_index("alert")["share"].to_dict()


def _rarity(names: Sequence[str], shares: Mapping[str, float]) -> float:
    """Return the share of molecules that have the rarest of the alerts `names`, with a minus sign; -1 if
    `names` is empty. The larger share counts: in a library (`shares`) or in ZINC-250k."""
    return -min((max(shares.get(name, 0.0), usual_alerts().get(name, 0.0)) for name in names), default=1.0)


def _unusual(atoms: Sequence[int]) -> list[int]:
    return [atom for atom in atoms if atom not in usual_atoms()]


def _count_new(parts: Sequence[Any], known: Mapping[Any, int]) -> int:
    return sum(known.get(part, 0) < 1 for part in parts)


def survive(molecules: pd.DataFrame, norms: Norms, threads: int = 1, progress: bool = False) -> pd.DataFrame:
    """Return a table that says whether each molecule passes each of STAGES, from `usual_size` to `plausible`,
    and all stages before it.

    `molecules` is indexed by SMILES and has the columns DESCRIBED; the result has the same index and a column
    per stage. Alerts (unwanted groups of atoms) take most of the time, so that they are looked for only in
    molecules that have passed all earlier stages.
    """
    reached = pd.DataFrame(False, molecules.index, [*STAGES])
    for stage, measures in STAGES.items():
        if stage == "few_alerts":
            found = tabulate(("alerts", "severity"), [*molecules.index], threads, progress)
            molecules = molecules.join(found.set_axis(molecules.index))
        within = [measure_all(name, molecules, norms) <= norms.limits[name] for name in measures]
        molecules = molecules[np.all(within, axis=0)]
        reached.loc[molecules.index, stage] = True
    return reached


def find_norms(trained: Sequence[str], threads: int = 1, progress: bool = False) -> Norms:
    """Find what is usual in a library of molecules, the SMILES `trained`. A limit is the quantile SHARE of
    a measure over up to ROWS molecules, each compared with the rest of the library, as if it were held
    out."""
    parts = tabulate(PARTS, trained, threads, progress)
    sample = some(len(trained), ALERT_ROWS)
    found = tabulate(("alerts",), [trained[row] for row in sample], threads, progress).set_axis(sample)
    counted = [
        Counter(chain.from_iterable(map(set, part)))
        for part in (parts["ring_systems"], parts["surroundings"], found["alerts"])
    ]

    def norms_without(copies: int) -> Norms:
        rings, atoms, named = ({part: count - copies for part, count in counts.items()} for counts in counted)
        return Norms(rings, atoms, {name: count / len(sample) for name, count in named.items()}, {})

    rows = some(len(trained), ROWS)  # all in `sample`
    described = tabulate((*_OTHERS, "severity"), [trained[row] for row in rows], threads, progress)
    described = described.set_axis(rows).join([parts, found])
    rest = norms_without(1)
    values = pd.DataFrame({name: measure_all(name, described, rest) for name in MEASURES})
    limits = values.quantile(SHARE, interpolation="higher").to_dict()
    return norms_without(0)._replace(limits=limits)


def count_left(
    texts: Sequence[str],
    known: Set[str],
    norms: Norms,
    threads: int = 1,
    progress: bool = False,
    keys: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Count the `texts` that are valid, the distinct and the novel molecules among them, and the novel
    ones that pass each of STAGES (tests of plausibility) and all stages before it. `keys` maps canonical
    SMILES to what identifies the molecule; None if SMILES do. `known` has what identifies known molecules."""
    molecules = sorted({name for name in map(canonical, texts) if name is not None})
    counts = count(texts, known, keys)
    first = {keys[name] if keys else name: name for name in reversed(molecules)}
    names = sorted(name for key, name in first.items() if key not in known)
    described = tabulate(DESCRIBED, names, threads, progress).set_axis(names)
    left = survive(described, norms, threads, progress).sum()
    return {name: counts[name] for name in _COUNTED} | {stage: int(left[stage]) for stage in STAGES}


def add_carbon(
    smiles: Sequence[str], known: Set[str] | DatasetMolecules, generator: np.random.Generator
) -> Iterator[str]:
    """Yield each molecule of `smiles` with a C inserted at a random place of its SMILES where that gives a
    valid molecule that is not in `known` (Renz et al. 2019). This control makes novel molecules without a
    model."""
    for text in smiles:
        for position in generator.permutation(len(text) + 1):
            longer = canonical(text[:position] + "C" + text[position:])
            if longer is not None and longer not in known:
                yield longer
                break


def draw_independent(rows: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Draw `count` rows (count, N) of independent tokens: each position has a token as often as `rows` (M, N)
    have it there."""
    drawn = generator.integers(len(rows), size=(count, rows.shape[1]))
    return np.take_along_axis(rows, drawn, axis=0)
