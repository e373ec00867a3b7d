"""Samples to metric rows."""

from pathlib import Path

import click
import pandas as pd

from pairflow.artifacts import (
    Science,
    Stopwatch,
    as_metrics,
    atomic,
    digest,
    read_table,
    token_array,
    write_table,
)
from pairflow.steps._command import existing, out, step


@step()
@existing("--samples", help="Samples, Parquet.")
@existing("--vocabulary", help="Vocabulary, JSON.")
@existing("--smiles", help="Canonical SMILES of the data set, Parquet.")
@click.option("--evaluation", default="main", show_default=True, help="Name of the evaluation.")
@out("--out", help="Metric rows, Parquet.")
def main(samples: Path, vocabulary: Path, smiles: Path, evaluation: str, out: Path):
    """Count valid, unique and novel molecules per trial, as the paper does and on canonical SMILES."""
    from pairflow.data.molecules import Vocabulary
    from pairflow.metrics.molecules import count

    stopwatch = Stopwatch()
    table, science = read_table(samples, "samples")
    words = Vocabulary.load(vocabulary)
    science.require_same_vocabulary(words.hash, samples, vocabulary)
    known, origin = read_table(smiles, "smiles")
    origin.require_same_vocabulary(words.hash, smiles, vocabulary)
    reference = frozenset(known["smiles"].to_pylist())
    trials = table["trial"].to_numpy()
    strings = pd.Series([words.decode(row) for row in token_array(table["tokens"])])
    rows = [
        {"trial": int(trial), "metric": metric, "value": float(value)}
        for trial, group in strings.groupby(trials)
        for metric, value in count(list(group), reference).items()
    ]
    facts = science.parameters
    shared = {key: facts[key] for key in ("method", "nfe", "seed", "samples")}
    frame = as_metrics(pd.DataFrame(rows), **shared, evaluation=evaluation)
    inputs = {"samples": digest(samples), "smiles": digest(smiles)}
    made = Science(kind="metrics", vocabulary=words.hash, parameters=facts, inputs=inputs)
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    stopwatch.write(out)


if __name__ == "__main__":
    main()
