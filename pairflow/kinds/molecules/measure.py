"""The metric rows of samples of molecules, and the histograms of their properties."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pairflow.artifacts import digest, read_table, token_array
from pairflow.data.classes import Classes
from pairflow.errors import InputError
from pairflow.kinds.molecules import chemistry, similarity, training_molecules
from pairflow.kinds.molecules.counts import canonical, count, count_reasons
from pairflow.kinds.molecules.descriptors import COMPUTED, compute
from pairflow.kinds.molecules.kind import MoleculeFiles
from pairflow.kinds.molecules.prepare import Vocabulary
from pairflow.kinds.molecules.settings import Chemistry
from pairflow.kinds.molecules.training_molecules import HELD_OUT_ROWS, DatasetMolecules
from pairflow.metrics.frechet import Moments, frechet_distance
from pairflow.metrics.measured import Machine, Measurement


def measure_samples(
    settings: Chemistry, samples: Path, files: MoleculeFiles, machine: Machine
) -> Measurement:
    """Count each trial's valid, unique and novel molecules and the reasons why others are not valid, and
    compare the distinct molecules with the training molecules."""
    with machine.provenance.uncounted():
        similarity.compile_all()
    sampled = SampledMolecules(settings, samples, files, machine)
    rows: list[dict[str, Any]] = []
    distinct = [np.empty(0, np.int64)]
    for trial, texts in sampled.strings.groupby(level=0):
        values, valid = sampled.count(list(texts))
        distinct.append(np.unique(valid))
        values |= sampled.compare(distinct[-1])
        shared = {"trial": int(trial), "samples": sampled.metadata.parameters["samples"]}
        rows += _metric_rows(values, **shared)
        rows += _metric_rows(sampled.measure_frechet(valid), **shared | {"samples": len(valid)})
    inputs = {"samples": samples, "smiles": files.smiles, "molecules": files.molecules}
    properties = sampled.described.properties[np.concatenate(distinct)]
    return Measurement(
        rows,
        sampled.metadata.vocabulary,
        {name: digest(path) for name, path in inputs.items()},
        sampled.metadata.parameters,
        histograms=chemistry.histograms(properties, sampled.training.properties),
    )


class SampledMolecules:
    """Samples of a model by trial (`strings`), whose distinct molecules are described once, as far as the
    settings ask for it, and what each trial's are compared with.

    `rows` has the row of each molecule, which arrays of rows refer to. `useful` and `in_class` say which of
    them are useful, and of the class that was asked for; there are none where nothing was asked for.
    """

    def __init__(self, settings: Chemistry, samples: Path, files: MoleculeFiles, machine: Machine):
        """Read the files; InputError unless they belong together."""
        table, self.metadata = read_table(samples, "samples")
        words, self.known = Vocabulary.load(files.vocabulary), DatasetMolecules.read(files.smiles)
        self.metadata.require_same_vocabulary(words.hash, samples, files.vocabulary)
        self.known.metadata.require_same_vocabulary(words.hash, files.smiles, files.vocabulary)
        self.metadata.require_same_data(self.known.metadata.data, samples, files.smiles)
        decoded = [words.decode(row) for row in token_array(table["tokens"])]
        self.strings = pd.Series(decoded, index=table["trial"].to_numpy(), dtype=object)
        self.training = training_molecules.read_training(files.molecules, self.known)
        spellings = chemistry.distinct(self.strings)
        self.rows = {molecule: row for row, molecule in enumerate(spellings)}
        molecules, work = list(spellings.values()), (machine.threads or 1, machine.progress)
        self.described = chemistry.DescribedMolecules.from_smiles(molecules, self.training, *work)
        self.useful: dict[str, np.ndarray] = {}
        self.moses: tuple[chemistry.Pieces, dict[str, chemistry.HeldOut]] | None = None
        self.features: np.ndarray | None = None
        if settings.fcd:
            self._read_chemnet(files.chemnet, list(spellings), machine)
        if settings.useful:
            properties = self.described.properties
            self.useful = chemistry.are_useful(spellings, properties, self.training, self.known.every)
        self.in_class = self._in_class(molecules)
        if settings.moses:
            chosen = training_molecules.some(len(self.known.held_out), HELD_OUT_ROWS)
            held_out = [self.known.held_out[row] for row in chosen]
            others = chemistry.describe_held_out(held_out, self.training, *work)
            self.moses = chemistry.Pieces.from_smiles(molecules, *work), others

    def _read_chemnet(self, statistics: Path | None, molecules: list[str], machine: Machine) -> None:
        if statistics is None:
            raise InputError("--chemnet: needed for fcd (see `pairflow chemnet`)")
        from pairflow.runtime.device import choose  # needs torch

        table, metadata = read_table(statistics, "ChemNet statistics")
        self.known.require(metadata, statistics)
        self.reference = Moments.from_columns(table, metadata.parameters["count"])
        device = str(choose(machine.device, machine.threads))
        self.features = training_molecules.chemnet_features(molecules, device, machine.progress)

    def _in_class(self, molecules: list[str]) -> np.ndarray | None:
        """None without a condition, and where it is a column that RDKit cannot compute."""
        condition = self.metadata.parameters.get("condition")
        classes = Classes(**self.metadata.condition) if self.metadata.condition else None
        if condition is None or classes is None or classes.property not in COMPUTED:
            return None
        return classes.labels(compute(classes.property, molecules)) == classes.parse(condition)

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
        """The metrics of distinct molecules, with the metrics of MOSES if they are wanted."""
        values = chemistry.compare(self.described[rows], self.training)
        if self.moses:
            pieces, held_out = self.moses
            values |= chemistry.compare_as_moses(self.described, pieces, rows, held_out)
        return values

    def measure_frechet(self, rows: np.ndarray) -> dict[str, float]:
        """The FCD of molecules, with repeats, if it is wanted."""
        if self.features is None:
            return {}
        if len(rows) < 2:
            return {"fcd": np.nan}
        return {"fcd": frechet_distance(Moments.from_features(self.features[rows]), self.reference)}


def _metric_rows(values: dict[str, Any], **shared: int) -> Iterator[dict[str, Any]]:
    for name, value in values.items():
        yield {**shared, "metric": name, "value": value, "reference": chemistry.REFERENCES.get(name)}
