"""Describes the molecules of the best run: plausible ones, and the core of a user's library among them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from rdkit import Chem, rdBase
from rdkit.Chem import rdFMCS

from pairflow import rng
from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds import kind_of
from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.measures.plausible import Norms, is_plausible
from pairflow.kinds.molecules.measures.training_molecules import DatasetMolecules, draw
from pairflow.kinds.molecules.settings import chemistry_settings, identity_of
from pairflow.kinds.molecules.structures.descriptors import ring_systems
from pairflow.kinds.molecules.structures.standardise import identify
from pairflow.plan import paths

_COMPARED = 30  # training molecules of which the common substructure is searched
_SECONDS = 5  # after which this search is given up
_ATOMS, _HETEROATOMS = (
    4,
    2,
)  # least heavy atoms of a common substructure: most molecules share a chain of carbon
_LOOKED_AT = 1000  # most training molecules and samples in which a core is looked for


@dataclass(frozen=True)
class Core:
    """What the training molecules have in common: a substructure, or the most frequent ring system.

    `smiles` spells it; `training` and `samples` are the shares of distinct molecules that contain it.
    """

    name: str
    smiles: str
    training: float
    samples: float


@dataclass(frozen=True)
class BestRun:
    """Some plausible samples of a run as SMILES, and the core of the user's library, if it has one."""

    plausible: list[str] = field(default_factory=list)
    core: Core | None = None


def describe_best(
    root: Path, experiment: Experiment, number: int, evaluation: str, method: str, nfe: int
) -> BestRun:
    """Choose up to `number` different, novel and plausible samples of a run of the first seed, at random.

    The core is looked for only in a user's own library.
    """
    files = kind_of(experiment.data).reference.list_files(root, experiment)
    vocabulary = Vocabulary.load(files["vocabulary"])
    run = paths.SampleRun(experiment.seeds[0], method, evaluation, nfe)
    tokens = token_array(read_table(paths.samples(root, run), "samples")[0]["tokens"])
    order = rng.random_order(rng.stream_seed(run.seed, "plausible"), len(tokens))
    texts = dict.fromkeys(canonical(vocabulary.decode(row)) for row in tokens[order])
    names = [text for text in texts if text]
    plausible: list[str] = []
    if chemistry_settings(experiment).plausible:
        known, norms = KnownMolecules.load(paths.data(root, "known.parquet")), Norms.read(files["norms"])
        kept = _keep_plausible(names, known, norms, identity_of(experiment))
        plausible = [*islice(kept, number)]
    if not experiment.data.file:
        return BestRun(plausible)
    trained = draw(DatasetMolecules.read(files["smiles"]).trained, _LOOKED_AT)
    return BestRun(plausible, find_core(trained, names[:_LOOKED_AT]))


def _keep_plausible(
    names: Sequence[str], known: KnownMolecules, norms: Norms, identity: str
) -> Iterator[str]:
    seen = set[str]()
    for name in names:
        key = identify(name, identity)
        if key not in known and key not in seen and is_plausible(Chem.MolFromSmiles(name), norms):
            seen.add(key)
            yield name


def find_core(trained: Sequence[str], samples: Sequence[str]) -> Core | None:
    """Find what training molecules (canonical SMILES) share, and how many of the samples have it.

    It is the largest common substructure if that has enough atoms, and otherwise the most frequent
    ring system. None without samples, or if no training molecule has a ring.
    """
    with rdBase.BlockLogs():
        training, sampled = ([*map(Chem.MolFromSmiles, texts)] for texts in (trained, samples))
        if not sampled:
            return None
        return _find_substructure(training, sampled) or _find_ring_system(training, sampled)


def _find_substructure(training: Sequence[Chem.Mol], samples: Sequence[Chem.Mol]) -> Core | None:
    if len(training) < 2:
        return None
    found = rdFMCS.FindMCS(training[:_COMPARED], timeout=_SECONDS)
    if found.canceled or found.numAtoms < _ATOMS:
        return None
    pattern = Chem.MolFromSmarts(found.smartsString)
    if sum(atom.GetAtomicNum() != 6 for atom in pattern.GetAtoms()) < _HETEROATOMS:
        return None
    smiles = Chem.MolFragmentToSmiles(training[0], training[0].GetSubstructMatch(pattern))
    shares = (
        sum(molecule.HasSubstructMatch(pattern) for molecule in molecules) / len(molecules)
        for molecules in (training, samples)
    )
    return Core("substructure", smiles, *shares)


def _find_ring_system(training: Sequence[Chem.Mol], samples: Sequence[Chem.Mol]) -> Core | None:
    of_training, of_samples = (
        [set(ring_systems(molecule)) for molecule in side] for side in (training, samples)
    )
    systems = [*chain.from_iterable(of_training)]
    if not systems:
        return None
    commonest = max(sorted(set(systems)), key=systems.count)
    shares = (sum(commonest in found for found in side) / len(side) for side in (of_training, of_samples))
    return Core("ring system", commonest, *shares)
