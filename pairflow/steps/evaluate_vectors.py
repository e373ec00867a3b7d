"""Samples of vectors to metric rows."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, digest, save_table, token_array
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, existing, out, real_tokens


@step()
@existing("--samples", help="Samples (Parquet).")
@real_tokens
@evaluation
@out("--out", help="Output file for the metric rows (Parquet).")
def main(samples: Path, tokens: Path, validation: Path, evaluation: str, out: Path):
    """Compare each trial's vectors with the training vectors, and average the energy and the straightness of
    the paths on which they were made."""
    from pairflow.kinds.vectors.measure import RealVectors, average_paths, compare

    provenance = Provenance()
    real = RealVectors.read(tokens, validation)
    table, metadata = real.read_samples(samples)
    drawn, trials = token_array(table["values"]), table["trial"].to_numpy()
    rows = []
    for trial in np.unique(trials):
        of_trial = trials == trial
        measured = [*compare(drawn[of_trial], real), *average_paths(table, of_trial)]
        rows += [{**row, "trial": int(trial)} for row in measured]
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
