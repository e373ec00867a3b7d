"""Chooses plausible molecules of the best run."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from rdkit import Chem

from pairflow import rng
from pairflow.artifacts import read_table, token_array
from pairflow.config import Experiment
from pairflow.kinds import kind_of
from pairflow.kinds.molecules.data.known import KnownMolecules
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures.counts import canonical
from pairflow.kinds.molecules.measures.plausible import Norms, is_plausible
from pairflow.kinds.molecules.settings import chemistry_settings, identity_of
from pairflow.kinds.molecules.structures.standardise import identify
from pairflow.plan import paths


def choose_plausible(
    root: Path, experiment: Experiment, number: int, evaluation: str, method: str, nfe: int
) -> list[str]:
    """Choose up to `number` different, novel and plausible samples (SMILES) of a run of the first seed, at
    random; none if the experiment does not count plausible molecules."""
    if not chemistry_settings(experiment).plausible:
        return []
    files = kind_of(experiment.data).reference.list_files(root, experiment)
    vocabulary = Vocabulary.load(files["vocabulary"])
    run = paths.SampleRun(experiment.seeds[0], method, evaluation, nfe)
    tokens = token_array(read_table(paths.samples(root, run), "samples")[0]["tokens"])
    order = rng.random_order(rng.stream_seed(run.seed, "plausible"), len(tokens))
    texts = dict.fromkeys(canonical(vocabulary.decode(row)) for row in tokens[order])
    known, norms = KnownMolecules.load(paths.data(root, "known.parquet")), Norms.read(files["norms"])
    kept = _keep_plausible([*filter(None, texts)], known, norms, identity_of(experiment))
    return [*islice(kept, number)]


def _keep_plausible(
    names: Sequence[str], known: KnownMolecules, norms: Norms, identity: str
) -> Iterator[str]:
    seen = set[str]()
    for name in names:
        key = identify(name, identity)
        if key not in known and key not in seen and is_plausible(Chem.MolFromSmiles(name), norms):
            seen.add(key)
            yield name
