"""Whether an experiment's files stem from one another and from its settings, as those on a page must.

Each file's metadata have the parameters and the hashes of what it was made from. A file exchanged for one of
another experiment, seed, split or method gives itself away by either. Hashes are of content: a file made anew
with equal bytes is the same. Files that are gone, and hashes that nobody wrote down, are passed over.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pairflow.artifacts import digest, read_metadata
from pairflow.config import Experiment, Settings, parse_method
from pairflow.errors import InputError
from pairflow.plan import paths


@dataclass(frozen=True)
class Made:
    """A file, its inputs by the names that its metadata have for them, and what its parameters should be."""

    path: Path
    inputs: Mapping[str, Path] = field(default_factory=dict)
    settings: Settings | None = None
    others: Mapping[str, Any] = field(default_factory=dict)
    split: str | None = None

    def require(self, digest_of) -> None:
        """InputError unless the file was made of those inputs with those parameters."""
        parameters, inputs, split = _facts(self.path)
        if None not in (split, self.split) and split != self.split:
            raise InputError(f"{self.path}: holds {split} rows, expected {self.split} rows")
        settings = self.settings.model_dump(mode="json") if self.settings else {}
        for key, value in {**settings, **self.others}.items():
            if key in parameters and parameters[key] != value:
                differs = f"{key} is {parameters[key]} there and {value} in the configuration"
                raise InputError(f"{self.path}: from another configuration, {differs}")
        for name, source in self.inputs.items():
            if name in inputs and source.is_file() and inputs[name] != digest_of(source):
                raise InputError(f"{self.path}: made of another file than {source}")


def _facts(path: Path) -> tuple[Mapping[str, Any], Mapping[str, str], str | None]:
    """Parameters, hashes of inputs and split of a table or, by its description, of a network."""
    if path.suffix != ".json":
        metadata = read_metadata(path)
        return metadata.parameters, metadata.inputs, metadata.split
    try:
        facts = json.loads(path.read_text())
        return facts, {**facts["inputs"], "weights": facts["weights"]}, None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a description of pairflow") from error


def require(root: Path, experiment: Experiment) -> None:
    """InputError that names the first file below `root` that is not of this experiment."""
    digest_of = functools.cache(digest)
    for made in _files(root, experiment):
        if made.path.is_file():
            made.require(digest_of)


def _files(root: Path, experiment: Experiment) -> Iterator[Made]:
    """All that is made on the way to a report; what others are made of comes first."""
    for path in paths.data_files(root, experiment):
        if path.suffix == ".parquet":
            split = path.stem if path.stem in ("train", "validation") else None
            yield Made(path, settings=experiment.data, split=split)
    if experiment.modality == "images":
        compared, extractor = _real(root), _extractor(root, experiment)
        yield from _of_images(root, experiment, extractor)
    else:
        compared, extractor = _described(root), {}
        yield from _of_molecules(root)
    for seed in experiment.seeds:
        yield from _of_couplings(root, experiment, seed)
        for name in experiment.trained():
            yield from _of_model(root, experiment, seed, name)
        for name in experiment.correlated():
            inputs = {"model": _weights(root, seed, name), "tokens": paths.data(root, "train.parquet")}
            path, settings = paths.correlation(root, seed, name), experiment.correlate_settings(seed)
            yield Made(path, inputs, settings, {"method": name})
    for run in paths.runs(experiment):
        settings = experiment.sample_settings(run.evaluation, run.nfe, run.seed)
        method, samples = {"method": run.method}, paths.samples(root, run)
        yield Made(samples, {"model": _weights(root, run.seed, run.method)}, settings, method)
        for path in (paths.metrics(root, run), paths.properties(root, run)):
            yield Made(path, {"samples": samples, **compared}, settings, {**method, **extractor})


def _of_couplings(root: Path, experiment: Experiment, seed: int) -> Iterator[Made]:
    train = paths.data(root, "train.parquet")
    for name in experiment.couplings():
        settings, pairs = experiment.pair_settings(name, seed), paths.pairs(root, seed, name)
        yield Made(pairs, {"tokens": train}, settings, split="train")
        yield Made(paths.diagnosis(root, seed, name), {"pairs": pairs}, settings)
    yield Made(paths.coverage(root, seed), {"tokens": train}, experiment.cover_settings(seed))


def _of_model(root: Path, experiment: Experiment, seed: int, name: str) -> Iterator[Made]:
    """A model, and the pairs that its parent made for it."""
    method, weights = parse_method(name), _weights(root, seed, name)
    learnt = paths.data(root, "train.parquet")
    inputs = {"validation": paths.data(root, "validation.parquet"), "weights": weights}
    settings: Settings = experiment.train_settings(name, seed)
    if method.parent:
        settings = experiment.distill_settings(name, seed)
        inputs["parent"] = _weights(root, seed, method.parent)
        if method.on_pairs:
            taught, learnt = experiment.teach_settings(name, seed), paths.pairs(root, seed, name)
            yield Made(learnt, {"model": inputs["parent"]}, taught)
            yield Made(paths.diagnosis(root, seed, name), {"pairs": learnt}, taught)
    elif method.coupling:
        learnt = paths.pairs(root, seed, method.coupling)
    yield Made(weights.with_name("model.json"), {**inputs, "data": learnt}, settings)


def _of_molecules(root: Path) -> Iterator[Made]:
    for path in (paths.molecules(root), paths.chemnet(root)):
        yield Made(path, {"smiles": paths.data(root, "smiles.parquet")})


def _described(root: Path) -> dict[str, Path]:
    return {"smiles": paths.data(root, "smiles.parquet"), "molecules": paths.molecules(root)}


def _of_images(root: Path, experiment: Experiment, extractor: Mapping[str, str]) -> Iterator[Made]:
    if extractor:
        weights = paths.classifier(root)
        inputs = {**_real(root), "weights": weights}
        yield Made(weights.with_suffix(".json"), inputs, experiment.classify_settings())
    for of in ("train", "test"):
        yield Made(paths.reference(root, of), {"tokens": paths.images(root, of)}, others=extractor)
    for name in experiment.evaluations:
        settings = experiment.floor_settings(name).model_dump(mode="json", exclude={"extractor"})
        yield Made(paths.floor(root, name), _real(root), others={**settings, **extractor})


def _real(root: Path) -> dict[str, Path]:
    return {"tokens": paths.images(root, "train"), "validation": paths.images(root, "test")}


def _extractor(root: Path, experiment: Experiment) -> dict[str, str]:
    """What the extractor is called, where the experiment trains it."""
    weights = paths.extractor_files(root, experiment).get("classifier")
    return {"extractor": f"classifier-{digest(weights)[:8]}"} if weights and weights.is_file() else {}


def _weights(root: Path, seed: int, method: str) -> Path:
    return paths.model(root, seed, method) / "model.safetensors"
