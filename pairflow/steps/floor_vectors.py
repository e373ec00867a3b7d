"""Real vectors to metric rows: how far held-out vectors are from training vectors."""

from pathlib import Path

import numpy as np
import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, save_table
from pairflow.config import RealDraws
from pairflow.metrics.draws import draw_trials
from pairflow.metrics.vectors import RealVectors, compare
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, out, real_tokens


@step(RealDraws)
@real_tokens
@evaluation
@out("--out", help="Output file for the metric rows of the method 'data' (Parquet).")
def main(settings: RealDraws, tokens: Path, validation: Path, evaluation: str, out: Path):
    """Compute the floor: the same metrics as for samples, with held-out vectors in their place."""
    provenance = Provenance()
    real = RealVectors.read(tokens, validation)
    rows = [
        {**row, "trial": trial, "samples": len(drawn)}
        for trial, drawn in draw_trials(settings, "test", np.arange(len(real.held_out)))
        for row in compare(real.held_out[drawn], real)
    ]
    shared = {"method": "data", "seed": settings.seed, "evaluation": evaluation}
    written = Metadata(
        kind="metrics",
        vocabulary=real.metadata.vocabulary,
        parameters=settings.model_dump(mode="json"),
        inputs=real.inputs,
    )
    save_table(out, as_metrics(pd.DataFrame(rows), **shared), written, provenance)


if __name__ == "__main__":
    main()
