"""Samples to metric rows."""

from dataclasses import replace
from pathlib import Path

import click
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
from pairflow.config import Chemistry
from pairflow.errors import InputError
from pairflow.steps.command import device, existing, out, quiet, step, threads


@step(Chemistry)
@existing("--samples", help="Samples, Parquet.")
@existing("--vocabulary", help="Vocabulary, JSON.")
@existing("--smiles", help="Canonical SMILES of the data set, Parquet.")
@existing("--molecules", help="Training molecules, described, Parquet.")
@existing("--chemnet", required=False, help="ChemNet statistics of the training molecules, Parquet (fcd).")
@click.option("--evaluation", default="main", show_default=True, help="Name of the evaluation.")
@out("--out", help="Metric rows, Parquet.")
@out("--properties", help="Histograms of properties, samples and training molecules, Parquet.")
@device
@threads
@quiet
def main(
    settings: Chemistry,
    samples: Path,
    vocabulary: Path,
    smiles: Path,
    molecules: Path,
    chemnet: Path | None,
    evaluation: str,
    out: Path,
    properties: Path,
    device,
    threads,
    quiet,
):
    """Count each trial's valid, unique and novel molecules, say why others are not valid, and compare the
    distinct ones with the training molecules."""
    from pairflow.data.molecules import Vocabulary
    from pairflow.metrics import chemistry, training_molecules
    from pairflow.metrics.molecules import canonical, count
    from pairflow.metrics.validity import count_reasons

    provenance = Provenance()
    table, metadata = read_table(samples, "samples")
    words = Vocabulary.load(vocabulary)
    metadata.require_same_vocabulary(words.hash, samples, vocabulary)
    known = training_molecules.KnownMolecules.read(smiles)
    known.metadata.require_same_vocabulary(words.hash, smiles, vocabulary)
    metadata.require_same_data(known.metadata.data, samples, smiles)
    training = training_molecules.read_training(molecules, known)
    strings = pd.Series([words.decode(row) for row in token_array(table["tokens"])], dtype=object)
    spellings = chemistry.distinct(strings)
    found = chemistry.DescribedMolecules.from_smiles(
        list(spellings.values()), training, threads or 1, not quiet
    )
    frechet = _fcd(settings, known, chemnet, list(spellings), (device, threads), not quiet)
    place = {molecule: row for row, molecule in enumerate(spellings)}
    facts = metadata.parameters
    rows, drawn = [], [np.empty(0, np.int64)]
    for trial, group in strings.groupby(table["trial"].to_numpy()):
        texts = list(group)
        valid = np.array([place[name] for name in map(canonical, texts) if name is not None], np.int64)
        drawn.append(np.unique(valid))
        values = {
            **count(texts, known.every),
            **count_reasons(text for text in texts if canonical(text) is None),
            "connected": chemistry.count_connected(texts),
            **chemistry.compare(found[drawn[-1]], training),
        }
        shared = {"trial": int(trial), "samples": facts["samples"]}
        rows += [
            {**shared, "metric": name, "value": value, "reference": chemistry.REFERENCES.get(name)}
            for name, value in values.items()
        ]
        rows += [{**shared, "samples": len(valid), **row} for row in frechet(valid)]
    frame = as_metrics(
        pd.DataFrame(rows), **{key: facts[key] for key in ("method", "nfe", "seed")}, evaluation=evaluation
    )
    inputs = {"samples": digest(samples), "smiles": digest(smiles), "molecules": digest(molecules)}
    parameters = {**facts, **settings.model_dump(mode="json")}
    made = Metadata(kind="metrics", vocabulary=words.hash, parameters=parameters, inputs=inputs)
    counts = chemistry.histograms(found.properties[np.concatenate(drawn)], training.properties)
    with atomic(out, properties) as [new_rows, new_counts]:
        write_table(new_rows, frame, made)
        write_table(new_counts, counts, replace(made, kind="property histograms"))
    provenance.write(out)


def _fcd(settings: Chemistry, known, statistics: Path | None, molecules: list[str], where, progress: bool):
    """A function of rows of `molecules`, with repeats: the metric rows of their FCD, if it is wanted."""
    if not settings.fcd:
        return lambda rows: []
    if statistics is None:
        raise InputError("--chemnet: needed for fcd (see `pairflow chemnet`)")
    from pairflow.metrics import chemnet, training_molecules
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
