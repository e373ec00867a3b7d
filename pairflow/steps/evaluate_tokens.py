"""Samples of token rows to metric rows."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, digest, save_table
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, existing, out, real_tokens


@step()
@existing("--samples", help="Samples (Parquet).")
@real_tokens
@evaluation
@out("--out", help="Output file for the metric rows (Parquet).")
def main(samples: Path, tokens: Path, validation: Path, evaluation: str, out: Path):
    """Compare each trial's samples with the nearest training rows, and their n-gram frequencies with those
    of held-out rows."""
    from pairflow.kinds.tokens.measure import RealRows, compile_for, measure

    provenance = Provenance()
    real = RealRows.read(tokens, validation)
    drawn, trials, metadata = real.read_samples(samples)
    with provenance.uncounted():
        compile_for(real)
    rows = [
        {**row, "trial": int(trial)}
        for trial in np.unique(trials)
        for row in measure(drawn[trials == trial], real)
    ]
    sampling = metadata.parameters
    shared = {key: sampling[key] for key in ("method", "nfe", "seed", "samples")}
    frame = as_metrics(pd.DataFrame(rows), **shared, evaluation=evaluation)
    written = Metadata(
        kind="metrics",
        vocabulary=metadata.vocabulary,
        parameters=sampling,
        inputs={"samples": digest(samples), **real.inputs},
    )
    save_table(out, frame, written, provenance)


if __name__ == "__main__":
    main()
