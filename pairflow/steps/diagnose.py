"""Pairs to metric rows: how far apart they are, and whether x0 looks like the source."""

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
from pairflow.metrics.coupling import diagnose
from pairflow.steps._command import existing, out, step


@step()
@existing("--pairs", help="Pairs, Parquet.")
@click.option("--method", required=True, help="Name of the coupling in the rows.")
@out("--out", help="Metric rows, Parquet.")
def main(pairs: Path, method: str, out: Path):
    """Describe a coupling: Hamming distances of x0 and x1, symbol frequencies of x0."""
    stopwatch = Stopwatch()
    table, science = read_table(pairs, "pairs")
    found = diagnose(token_array(table["x0"]), token_array(table["x1"]), science.vocabulary_size)
    rows = pd.DataFrame({"metric": found.keys(), "value": found.values()})
    seed = science.parameters["seed"]
    frame = as_metrics(rows, method=method, seed=seed, evaluation="coupling", samples=len(table))
    made = Science(kind="metrics", parameters=science.parameters, inputs={"pairs": digest(pairs)})
    with atomic(out) as [temporary]:
        write_table(temporary, frame, made)
    stopwatch.write(out)


if __name__ == "__main__":
    main()
