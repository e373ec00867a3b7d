"""Measures samples of molecules: rows of metrics, and histograms of properties."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from pairflow import rng
from pairflow.artifacts import Metadata, digest, read_metadata, read_table, token_array
from pairflow.data.classes import Classes, Properties
from pairflow.errors import InputError
from pairflow.kinds.molecules.data.prepare import Vocabulary
from pairflow.kinds.molecules.measures import chemistry, plausible, training_molecules
from pairflow.kinds.molecules.measures.counts import canonical, count, count_reasons
from pairflow.kinds.molecules.measures.nearest_classes import NearestClasses
from pairflow.kinds.molecules.measures.plausible import Norms
from pairflow.kinds.molecules.measures.training_molecules import DatasetMolecules, common, draw
from pairflow.kinds.molecules.settings import COMPUTED, LONGEST, Chemistry, MoleculeDraws
from pairflow.kinds.molecules.settings.metrics import MoleculeFiles, MoleculeFloorFiles
from pairflow.kinds.molecules.structures import similarity
from pairflow.kinds.molecules.structures.descriptors import PROPERTIES
from pairflow.kinds.molecules.structures.standardise import identify_all
from pairflow.metrics.frechet import Moments, frechet_distance
from pairflow.metrics.measured import Machine, Measurement
from pairflow.metrics.metric import HELD_OUT
from pairflow.settings.conditions import split_conditions


def measure_samples(
    settings: Chemistry, samples: Path, files: MoleculeFiles, machine: Machine
) -> Measurement:
    with machine.provenance.uncounted():
        similarity.compile_all()
    sampled = SampledMolecules(settings, samples, files, machine)
    described = sampled.described
    rows: list[dict[str, object]] = []
    properties = []
    for trial, texts in sampled.strings.groupby(level=0):
        names = [name for name in map(canonical, texts) if name is not None]
        valid = described.index.get_indexer(names)
        distinct = described.iloc[np.unique(valid)].drop_duplicates("key")
        values = sampled.count(list(texts), described.iloc[valid], distinct)
        values |= chemistry.compare(distinct, sampled.training)
        shared = {"trial": int(trial), "samples": sampled.metadata.parameters["samples"]}
        rows += _metric_rows(values, **shared)
        if settings.fcd:
            rows += _metric_rows({"fcd": sampled.measure_frechet(valid)}, **shared | {"samples": len(valid)})
        properties.append(chemistry.properties_of(distinct))
    inputs = {"samples": samples, "smiles": files.smiles, "molecules": files.molecules}
    if sampled.nearest and files.labels:
        inputs["labels"] = files.labels
    return Measurement(
        rows,
        sampled.metadata.vocabulary,
        {name: digest(path) for name, path in inputs.items()},
        sampled.metadata.parameters,
        sampled.known.rule,
        histograms=chemistry.histograms(
            np.concatenate([np.empty((0, len(PROPERTIES))), *properties]), sampled.training.properties
        ),
    )


def measure_floor(settings: MoleculeDraws, files: MoleculeFloorFiles, machine: Machine) -> Measurement:
    """Count how many held-out molecules (method `data`) and controls are left from valid to plausible.
    Controls are training molecules with one carbon more, strings of independent symbols, and samples of
    the model that the trainings start from, if there is one. Counts are scaled to the number of samples of
    a trial, except HELD_OUT, the number of held-out molecules that are measured."""
    words, known = Vocabulary.load(files.vocabulary), DatasetMolecules.read(files.smiles)
    norms, work = read_norms(files.norms, known), (machine.threads or 1, machine.progress)
    generator = np.random.default_rng(rng.stream_seed(settings.seed, "controls"))
    held_out, trained = (draw(molecules, plausible.DRAWN) for molecules in (known.held_out, known.trained))
    rows = []
    for text in trained:
        with suppress(InputError):  # a canonical SMILES may have symbols that the data's own spelling lacks
            rows.append(words.encode(text, LONGEST))
    count = plausible.DRAWN if rows else 0
    symbols = plausible.draw_independent(np.array(rows).reshape(-1, LONGEST), count, generator)
    drawn = {
        "data": held_out,
        plausible.ONE_CARBON_MORE: [*plausible.add_carbon(trained, known, generator)],
        plausible.INDEPENDENT: [*map(words.decode, symbols)],
    }
    if files.start:
        drawn[plausible.START] = read_start(files.start, files.vocabulary)[: plausible.DRAWN]
    training = training_molecules.read_training(files.molecules, known)
    counts = []
    for method, texts in drawn.items():
        keys = identify_all(filter(None, map(canonical, texts)), known.identity, work[0])
        others = known.known_among(keys.values(), "train" if method == "data" else "")
        counted = plausible.count_left(texts, others, norms, *work, keys) if texts else {}
        if texts and method in ("data", plausible.START):
            described = chemistry.describe_samples(texts, training, (), *work)
            counted |= chemistry.count_cores(described["scaffold"], training.scaffolds)
        counts += [
            {"method": method, "metric": name, "value": number * settings.samples / len(texts)}
            for name, number in counted.items()
        ]
    counts.append({"method": "data", "metric": HELD_OUT, "value": len(held_out)})
    read = {"smiles": files.smiles, "norms": files.norms, "start": files.start}
    inputs = {name: digest(path) for name, path in read.items() if path}
    shared = {"trial": 0, "samples": settings.samples}
    return Measurement([row | shared for row in counts], words.hash, inputs, parameters=known.rule)


def read_start(path: Path, vocabulary: Path) -> list[str]:
    """Return the samples in the file `path`, of the model that the trainings start from, as strings. Raises
    InputError unless the data's vocabulary (the file `vocabulary`) begins with that model's symbols."""
    table, metadata = read_table(path, "samples")
    words = Vocabulary.load(vocabulary)
    first = Vocabulary(kind=words.kind, tokens=words.tokens[: metadata.vocabulary_size])
    metadata.require_same_vocabulary(first.hash, path, vocabulary)
    return [words.decode(row) for row in token_array(table["tokens"])]


def read_norms(path: Path | None, known: DatasetMolecules) -> Norms:
    """Read the norms of the data set `known`. Raises InputError if `path` is None, or if the file has the
    norms of another data set."""
    if path is None:
        raise InputError("--norms: needed for plausible molecules (see `pairflow norms`)")
    known.require(read_metadata(path), path)
    return Norms.read(path)


def read_asked(metadata: Metadata) -> dict[Classes, np.ndarray]:
    """Return the properties that samples were asked for, each with its labels (B,): the number of the class
    that each of the B samples of a trial was asked for. `metadata` belongs to the file of samples. Returns an
    empty dict for samples without a condition."""
    condition = Properties.from_facts(metadata.condition)
    conditions = split_conditions(metadata.parameters.get("condition"))
    if condition is None or not conditions:
        return {}
    asked, count = condition.read(conditions), metadata.parameters["samples"]
    labels = condition.targets(conditions, 0, count).reshape(count, -1)
    return {
        classes: labels[:, column]
        for column, classes in enumerate(condition.properties)
        if classes.property in asked
    }


def measure_targets(asked: Mapping[Classes, np.ndarray], valid: pd.DataFrame) -> dict[str, object]:
    """Count the valid samples that have what they were asked for.

    `asked` has the labels (V,) of V valid samples for each property, and `valid` is a table of these samples
    with a column for each property. Returns `in_class`, the number of samples that are in their class by all
    properties. If there are several properties, `<property>_in_class` is the number by each of them.
    """
    values: dict[str, object] = {}
    met = np.ones(len(valid), bool)
    for classes, labels in asked.items():
        inside = classes.numbers(valid[classes.property].to_numpy(np.float64)) == labels
        met &= inside
        values |= {f"{classes.property}_in_class": int(inside.sum())} if len(asked) > 1 else {}
    return values | ({"in_class": int(met.sum())} if asked else {})


class SampledMolecules:
    """The samples of a model, and the molecules that they are compared with.

    Attributes:
        strings: the decoded samples, indexed by their trial.
        known: the molecules of the data set.
        copies: the strings, and their canonical SMILES, that are canonical SMILES of the data set.
        keys: what identifies each valid sample by the rule of the data set, by its canonical SMILES.
        known_keys: the values of `keys` that also identify a molecule of the data set.
        asked: the properties computed by RDKit that samples were asked for, each with the numbers of the
            classes that the samples of a trial were asked for (B,).
        nearest: measures the same for columns of the user's table, by nearest training molecules; None
            without such columns or without `files.labels`.
        described: a table of the distinct valid molecules of all trials (see `chemistry.describe_samples`)
            with their `key`. If the settings ask for it, each of `plausible.STAGES` has a column, too.
    """

    def __init__(self, settings: Chemistry, samples: Path, files: MoleculeFiles, machine: Machine):
        """Read the samples and the `files`, and describe the molecules. Raises InputError unless the files
        belong to one data set."""
        table, self.metadata = read_table(samples, "samples")
        words, self.known = Vocabulary.load(files.vocabulary), DatasetMolecules.read(files.smiles)
        self.metadata.require_same_vocabulary(words.hash, samples, files.vocabulary)
        self.known.metadata.require_same_vocabulary(words.hash, files.smiles, files.vocabulary)
        self.metadata.require_same_data(self.known.metadata.data, samples, files.smiles)
        decoded = [*map(words.decode, token_array(table["tokens"]))]
        self.strings = pd.Series(decoded, index=table["trial"].to_numpy(), dtype=object)
        self.training = training_molecules.read_training(files.molecules, self.known)
        work = machine.threads or 1, machine.progress
        valid = [name for name in map(canonical, decoded) if name is not None]
        self.copies = common([*decoded, *valid], self.known.smiles)
        self.keys = identify_all(valid, self.known.identity, work[0])
        self.known_keys = self.known.known_among(self.keys.values())
        asked = read_asked(self.metadata)
        self.asked = {classes: asked[classes] for classes in asked if classes.property in COMPUTED}
        further = [classes.property for classes in self.asked]
        further += plausible.DESCRIBED if settings.plausible else ()
        self.described = chemistry.describe_samples(self.strings, self.training, further, *work)
        self.described["key"] = self.described.index.map(self.keys)
        self.nearest: NearestClasses | None = None
        own = {classes: asked[classes] for classes in asked if classes not in self.asked}
        if own and files.labels:
            self.nearest = NearestClasses.read(
                own, self.metadata, files.smiles, files.molecules, files.labels
            )
            rows = self.nearest.find(self.described["fingerprint"])
            self.described = self.described.assign(nearest_row=rows)
        if settings.fcd:
            self._read_chemnet(files.chemnet, machine)
        if settings.plausible:
            norms = read_norms(files.norms, self.known)
            new = self.described[~self.described["key"].isin(self.known_keys)]
            stages = plausible.survive(new, norms, *work)
            self.described = self.described.join(stages).fillna(dict.fromkeys(stages, False))

    def _read_chemnet(self, statistics: Path | None, machine: Machine) -> None:
        if statistics is None:
            raise InputError("--chemnet: needed for fcd (see `pairflow chemnet`)")
        from pairflow.runtime.device import choose  # needs torch

        table, metadata = read_table(statistics, "ChemNet statistics")
        self.known.require(metadata, statistics)
        self.reference = Moments.from_columns(table, metadata.parameters["count"])
        device, names = str(choose(machine.device, machine.threads)), [*self.described.index]
        self.features = training_molecules.chemnet_features(names, device, machine.progress)

    def count(self, texts: list[str], valid: pd.DataFrame, distinct: pd.DataFrame) -> dict[str, object]:
        """Count the molecules of one trial; returns the counts by metric. `texts` are its strings. `valid`
        and `distinct` are the rows of the table `described` for its valid molecules, with and without
        repeats."""
        chosen = [name for name in plausible.STAGES if name in distinct]
        readable = np.array([canonical(text) is not None for text in texts])
        return {
            **count(texts, self.copies, self.keys, self.known_keys),
            **count_reasons(text for text in texts if canonical(text) is None),
            **{name: int(distinct[name].sum()) for name in chosen},
            **measure_targets({classes: labels[readable] for classes, labels in self.asked.items()}, valid),
            **(self.nearest.measure(readable, valid["nearest_row"].to_numpy()) if self.nearest else {}),
        }

    def measure_frechet(self, rows: np.ndarray) -> float:
        """Return the FCD (Fréchet ChemNet Distance) of the molecules with the row numbers `rows` in
        `described`, repeats included; NaN for under two."""
        if len(rows) < 2:
            return np.nan
        return frechet_distance(Moments.from_features(self.features[rows]), self.reference)


def _metric_rows(values: dict[str, object], **shared: int) -> Iterator[dict[str, object]]:
    for name, value in values.items():
        yield {**shared, "metric": name, "value": value, "reference": chemistry.REFERENCES.get(name)}
