"""The metric rows of samples of molecules, and the histograms of their properties."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, digest, read_table, token_array
from pairflow.errors import InputError
from pairflow.kinds.molecules import chemistry, moses, similarity, training_molecules
from pairflow.kinds.molecules.counts import canonical, count, count_reasons
from pairflow.kinds.molecules.descriptors import COMPUTED, compute
from pairflow.kinds.molecules.prepare import Vocabulary
from pairflow.kinds.molecules.settings import Chemistry
from pairflow.kinds.molecules.store import Classes
from pairflow.kinds.molecules.training_molecules import DatasetMolecules
from pairflow.metrics.frechet import Moments, frechet_distance
from pairflow.metrics.measured import Machine, Measurement

if TYPE_CHECKING:
    from pairflow.kinds.molecules.kind import MoleculeFiles

REFERENCES = chemistry.REFERENCES | moses.REFERENCES
Compare = Callable[[np.ndarray], dict[str, Any]]


def measure_samples(
    settings: Chemistry, samples: Path, files: "MoleculeFiles", machine: Machine
) -> Measurement:
    """Count each trial's valid, unique and novel molecules and the reasons why others are not valid, and
    compare the distinct molecules with the training molecules."""
    with machine.provenance.uncounted():
        similarity.compile_all()
    strings, metadata, known = _read(samples, files)
    described = SampledMolecules.describe(settings, strings, metadata, known, files, machine)
    rows: list[dict[str, Any]] = []
    distinct = [np.empty(0, np.int64)]
    for trial, texts in strings.groupby(level=0):
        values, valid = described.count(list(texts))
        distinct.append(np.unique(valid))
        values |= described.compare(distinct[-1])
        shared = {"trial": int(trial), "samples": metadata.parameters["samples"]}
        rows += _metric_rows(values, **shared)
        rows += _metric_rows(described.frechet(valid), **shared | {"samples": len(valid)})
    inputs = {"samples": samples, "smiles": files.smiles, "molecules": files.molecules}
    return Measurement(
        rows,
        metadata.vocabulary,
        {name: digest(path) for name, path in inputs.items()},
        metadata.parameters,
        histograms=described.histograms(np.concatenate(distinct)),
    )


def _read(samples: Path, files: "MoleculeFiles") -> tuple[pd.Series, Metadata, DatasetMolecules]:
    """The samples as strings by trial, their metadata, the known molecules; InputError unless they fit."""
    table, metadata = read_table(samples, "samples")
    words = Vocabulary.load(files.vocabulary)
    metadata.require_same_vocabulary(words.hash, samples, files.vocabulary)
    known = DatasetMolecules.read(files.smiles)
    known.metadata.require_same_vocabulary(words.hash, files.smiles, files.vocabulary)
    metadata.require_same_data(known.metadata.data, samples, files.smiles)
    decoded = [words.decode(row) for row in token_array(table["tokens"])]
    return pd.Series(decoded, index=table["trial"].to_numpy(), dtype=object), metadata, known


@dataclass(frozen=True, eq=False)
class SampledMolecules:
    """The distinct molecules of all samples, described once, and what each trial's are compared with.

    `rows` has the row of each molecule, which arrays of rows refer to. `useful` and `in_class` say which of
    them are useful, and of the class that was asked for; there are none where nothing was asked for.
    """

    rows: dict[str, int]
    described: chemistry.DescribedMolecules
    training: chemistry.TrainingMolecules
    known: DatasetMolecules
    useful: dict[str, np.ndarray]
    in_class: np.ndarray | None
    moses: Compare
    frechet: Compare

    @classmethod
    def describe(
        cls,
        settings: Chemistry,
        strings: pd.Series,
        metadata: Metadata,
        known: DatasetMolecules,
        files: "MoleculeFiles",
        machine: Machine,
    ) -> "SampledMolecules":
        """Describe the molecules, as far as the settings ask for it."""
        training = training_molecules.read_training(files.molecules, known)
        spellings = chemistry.distinct(strings)
        molecules, threads = list(spellings.values()), machine.threads or 1
        described = chemistry.DescribedMolecules.from_smiles(molecules, training, threads, machine.progress)
        frechet = _make_frechet(settings, known, files.chemnet, list(spellings), machine)
        rows = {molecule: row for row, molecule in enumerate(spellings)}
        useful = {}
        if settings.useful:
            useful = chemistry.are_useful(spellings, described.properties, training, known.every)
        in_class = _in_class(metadata, molecules)
        compare = _make_moses(settings, molecules, described, training, known, machine)
        return cls(rows, described, training, known, useful, in_class, compare, frechet)

    def count(self, texts: list[str]) -> tuple[dict[str, Any], np.ndarray]:
        """The counts of one trial, and the rows of its valid molecules, with repeats."""
        names = map(canonical, texts)
        valid = np.array([self.rows[name] for name in names if name is not None], np.int64)
        counts = {
            **count(texts, self.known.every),
            **count_reasons(text for text in texts if canonical(text) is None),
            "connected": chemistry.count_connected(texts),
            **{name: int(flags[np.unique(valid)].sum()) for name, flags in self.useful.items()},
        }
        if self.in_class is not None:
            counts["in_class"] = int(self.in_class[valid].sum())
        return counts, valid

    def compare(self, rows: np.ndarray) -> dict[str, Any]:
        """The metrics of distinct molecules."""
        return chemistry.compare(self.described[rows], self.training) | self.moses(rows)

    def histograms(self, rows: np.ndarray) -> pd.DataFrame:
        """Histograms of the properties of molecules and of the training molecules."""
        return chemistry.histograms(self.described.properties[rows], self.training.properties)


def _in_class(metadata: Metadata, molecules: list[str]) -> np.ndarray | None:
    """Whether each of the molecules is of the class that was asked for.

    None without a condition, and where it is a column that RDKit cannot compute.
    """
    condition = metadata.parameters.get("condition")
    classes = Classes(**metadata.condition) if metadata.condition else None
    if condition is None or classes is None or classes.property not in COMPUTED:
        return None
    return classes.labels(compute(classes.property, molecules)) == classes.parse(condition)


def _make_moses(
    settings: Chemistry,
    molecules: list[str],
    described: chemistry.DescribedMolecules,
    training: chemistry.TrainingMolecules,
    known: DatasetMolecules,
    machine: Machine,
) -> Compare:
    """A function of distinct rows of `molecules` that gives the metrics of MOSES, if they are wanted."""
    if not settings.moses:
        return lambda rows: {}
    threads, progress = machine.threads or 1, machine.progress
    chosen = training_molecules.some(len(known.held_out), training_molecules.HELD_OUT_ROWS)
    others = [known.held_out[row] for row in chosen]
    held_out = moses.describe_held_out(others, training, threads, progress)
    pieces = moses.Pieces.from_smiles(molecules, threads, progress)
    return lambda rows: moses.compare(described, pieces, rows, held_out)


def _make_frechet(
    settings: Chemistry,
    known: DatasetMolecules,
    statistics: Path | None,
    molecules: list[str],
    machine: Machine,
) -> Compare:
    """A function of rows of `molecules`, with repeats, that gives their FCD, if it is wanted."""
    if not settings.fcd:
        return lambda rows: {}
    if statistics is None:
        raise InputError("--chemnet: needed for fcd (see `pairflow chemnet`)")
    from pairflow.kinds.molecules import chemnet  # needs pairflow[fcd], and torch as the next one
    from pairflow.runtime.device import choose

    reference = training_molecules.read_chemnet(statistics, known)
    features = chemnet.features(molecules, str(choose(machine.device, machine.threads)), machine.progress)

    def compare(rows: np.ndarray) -> dict[str, Any]:
        if len(rows) < 2:
            return {"fcd": np.nan}
        return {"fcd": frechet_distance(Moments.from_features(features[rows]), reference)}

    return compare


def _metric_rows(values: dict[str, Any], **shared: int) -> Iterator[dict[str, Any]]:
    for name, value in values.items():
        reference = "train" if name == "fcd" else REFERENCES.get(name)
        yield {**shared, "metric": name, "value": value, "reference": reference}
