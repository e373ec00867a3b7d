"""Samples to metric rows."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pairflow.artifacts import (
    Metadata,
    Provenance,
    as_metrics,
    atomic,
    digest,
    read_table,
    token_array,
    write_table,
)
from pairflow.errors import InputError
from pairflow.kinds.molecules.settings import Chemistry
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, existing, grouped, on_device, out


class _Inputs(NamedTuple):
    samples: Path
    vocabulary: Path
    smiles: Path
    molecules: Path
    chemnet: Path | None


_inputs = grouped(
    "inputs",
    _Inputs,
    existing("--samples", help="Samples (Parquet)."),
    existing("--vocabulary", help="Vocabulary of the data set (JSON)."),
    existing("--smiles", help="Canonical SMILES of the data set (Parquet)."),
    existing(
        "--molecules",
        help="Fingerprints, scaffolds and properties of the training molecules "
        "(Parquet), as `pairflow describe_molecules` writes them.",
    ),
    existing(
        "--chemnet",
        required=False,
        help="ChemNet statistics of the training molecules (Parquet), needed for FCD.",
    ),
)


@step(Chemistry)
@_inputs
@evaluation
@out("--out", help="Output file for the metric rows (Parquet).")
@out("--properties", help="Output file for histograms of properties of samples and data (Parquet).")
@on_device
def main(
    settings: Chemistry, inputs: _Inputs, evaluation: str, out: Path, properties: Path, device, threads, quiet
):
    """Count each trial's valid, unique and novel molecules, give the reasons why the others are not
    valid, and compare the distinct molecules with the training molecules."""
    from pairflow.kinds.molecules import chemistry, similarity, training_molecules

    provenance = Provenance()
    with provenance.uncounted():
        similarity.compile_all()
    strings, metadata, known = _read(inputs)
    training = training_molecules.read_training(inputs.molecules, known)
    spellings = chemistry.distinct(strings)
    molecules = list(spellings.values())
    described = chemistry.DescribedMolecules.from_smiles(molecules, training, threads or 1, not quiet)
    frechet = _fcd(settings, known, inputs.chemnet, list(spellings), (device, threads), not quiet)
    places = {molecule: row for row, molecule in enumerate(spellings)}
    useful = _useful(settings, spellings, described.properties, training, known)
    fits = _in_class(metadata, molecules)
    beside = _moses(settings, molecules, described, training, known, threads or 1, not quiet)
    rows: list[dict[str, Any]] = []
    distinct = [np.empty(0, np.int64)]
    for trial, texts in strings.groupby(level=0):
        values, valid = _count(list(texts), places, known, useful, fits)
        distinct.append(np.unique(valid))
        values |= chemistry.compare(described[distinct[-1]], training) | beside(distinct[-1])
        rows += _metric_rows(values, trial=int(trial), samples=metadata.parameters["samples"])
        rows += [{"trial": int(trial), "samples": len(valid), **row} for row in frechet(valid)]
    counts = chemistry.histograms(described.properties[np.concatenate(distinct)], training.properties)
    _write((out, properties), pd.DataFrame(rows), counts, settings, metadata, inputs, evaluation)
    provenance.write(out)


def _read(inputs: _Inputs):
    """The samples as strings by trial, their metadata, the known molecules; InputError unless they fit."""
    from pairflow.kinds.molecules import training_molecules
    from pairflow.kinds.molecules.prepare import Vocabulary

    table, metadata = read_table(inputs.samples, "samples")
    words = Vocabulary.load(inputs.vocabulary)
    metadata.require_same_vocabulary(words.hash, inputs.samples, inputs.vocabulary)
    known = training_molecules.DatasetMolecules.read(inputs.smiles)
    known.metadata.require_same_vocabulary(words.hash, inputs.smiles, inputs.vocabulary)
    metadata.require_same_data(known.metadata.data, inputs.samples, inputs.smiles)
    decoded = [words.decode(row) for row in token_array(table["tokens"])]
    return pd.Series(decoded, index=table["trial"].to_numpy(), dtype=object), metadata, known


def _in_class(metadata: Metadata, molecules: list[str]) -> np.ndarray | None:
    """Whether each of the molecules is of the class that was asked for.

    None without a condition, and where it is a column that RDKit cannot compute.
    """
    from pairflow.data.classes import Classes
    from pairflow.kinds.molecules.properties import COMPUTED, compute

    condition = metadata.parameters.get("condition")
    classes = Classes(**metadata.condition) if metadata.condition else None
    if condition is None or classes is None or classes.property not in COMPUTED:
        return None
    return classes.labels(compute(classes.property, molecules)) == classes.parse(condition)


def _useful(settings: Chemistry, spellings: dict[str, str], properties: np.ndarray, training, known):
    """Which molecules are useful, as `chemistry.are_useful` says it, if that is wanted."""
    from pairflow.kinds.molecules import chemistry

    return chemistry.are_useful(spellings, properties, training, known.every) if settings.useful else {}


def _moses(
    settings: Chemistry, molecules: list[str], described, training, known, threads: int, progress: bool
) -> Callable[[np.ndarray], dict[str, float]]:
    """A function of distinct rows of `molecules` that gives the metrics of MOSES, if they are wanted."""
    from pairflow.kinds.molecules import moses, training_molecules

    if not settings.moses:
        return lambda rows: {}
    chosen = training_molecules.some(len(known.held_out), training_molecules.HELD_OUT_ROWS)
    others = [known.held_out[row] for row in chosen]
    held_out = moses.describe_held_out(others, training, threads, progress)
    pieces = moses.Pieces.from_smiles(molecules, threads, progress)
    return lambda rows: moses.compare(described, pieces, rows, held_out)


def _count(
    texts: list[str],
    places: dict[str, int],
    known,
    useful: dict[str, np.ndarray],
    fits: np.ndarray | None,
) -> tuple[dict[str, Any], np.ndarray]:
    """The counts of one trial, and the places of its valid molecules, with repeats."""
    from pairflow.kinds.molecules import chemistry
    from pairflow.kinds.molecules.counts import canonical, count
    from pairflow.kinds.molecules.validity import count_reasons

    valid = np.array([places[name] for name in map(canonical, texts) if name is not None], np.int64)
    counts = {
        **count(texts, known.every),
        **count_reasons(text for text in texts if canonical(text) is None),
        "connected": chemistry.count_connected(texts),
        **{name: int(flags[np.unique(valid)].sum()) for name, flags in useful.items()},
    }
    if fits is not None:
        counts["in_class"] = int(fits[valid].sum())
    return counts, valid


def _metric_rows(values: dict[str, Any], **shared: int) -> Iterator[dict[str, Any]]:
    from pairflow.kinds.molecules import chemistry, moses

    references = chemistry.REFERENCES | moses.REFERENCES
    for name, value in values.items():
        yield {**shared, "metric": name, "value": value, "reference": references.get(name)}


def _write(
    outputs: tuple[Path, Path],
    rows: pd.DataFrame,
    counts: pd.DataFrame,
    settings: Chemistry,
    metadata: Metadata,
    inputs: _Inputs,
    evaluation: str,
) -> None:
    """Write the metric rows and the histograms, together."""
    sampling = metadata.parameters
    shared = {key: sampling[key] for key in ("method", "nfe", "seed")}
    written = Metadata(
        kind="metrics",
        vocabulary=metadata.vocabulary,
        parameters={**sampling, **settings.model_dump(mode="json")},
        inputs={name: digest(getattr(inputs, name)) for name in ("samples", "smiles", "molecules")},
    )
    with atomic(*outputs) as [new_rows, new_counts]:
        write_table(new_rows, as_metrics(rows, **shared, evaluation=evaluation), written)
        write_table(new_counts, counts, replace(written, kind="property histograms"))


def _fcd(
    settings: Chemistry, known, statistics: Path | None, molecules: list[str], where, progress: bool
) -> Callable[[np.ndarray], list[dict]]:
    """A function of rows of `molecules`, with repeats, that gives the metric rows of their FCD, if wanted."""
    if not settings.fcd:
        return lambda rows: []
    if statistics is None:
        raise InputError("--chemnet: needed for fcd (see `pairflow chemnet`)")
    from pairflow.kinds.molecules import chemnet, training_molecules
    from pairflow.metrics.frechet import Moments, frechet_distance
    from pairflow.runtime.device import choose

    reference = training_molecules.read_chemnet(statistics, known)
    features = chemnet.features(molecules, str(choose(*where)), progress)

    def compare(rows: np.ndarray) -> list[dict]:
        value = (
            frechet_distance(Moments.from_features(features[rows]), reference) if len(rows) > 1 else np.nan
        )
        return [{"metric": "fcd", "value": value, "reference": "train"}]

    return compare


if __name__ == "__main__":
    main()
