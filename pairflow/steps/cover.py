"""Token rows to the coverage table: how much of the data the closed-form forward velocity reaches."""

from pathlib import Path

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
from pairflow.config import CoverSettings
from pairflow.steps._command import existing, out, quiet, step, threads


@step(CoverSettings)
@existing("--tokens", help="Token rows, Parquet.")
@out("--out", help="Metric rows, Parquet: unique_reached, coverage, coverage_predicted.")
@threads
@quiet
def main(settings: CoverSettings, tokens: Path, out: Path, threads, quiet):
    """Draw as many samples as data points along the forward velocity; count the data points reached."""
    from pairflow.pairing import forward

    stopwatch = Stopwatch()
    table, science = read_table(tokens, "tokens")
    rows = token_array(table["tokens"])
    rules = {"vocabulary_size": science.vocabulary_size, "steps": settings.steps, "seed": settings.seed}
    samples = forward.sample(rows, len(rows), **rules, threads=threads, progress=not quiet)
    found = forward.coverage(samples, rows)
    frame = as_metrics(
        pd.DataFrame({"metric": found.keys(), "value": found.values()}),
        method="forward",
        seed=settings.seed,
        evaluation="coverage",
        samples=len(rows),
    )
    parameters, inputs = settings.model_dump(mode="json"), {"tokens": digest(tokens)}
    with atomic(out) as [temporary]:
        write_table(temporary, frame, Science(kind="metrics", parameters=parameters, inputs=inputs))
    stopwatch.write(out)


if __name__ == "__main__":
    main()
