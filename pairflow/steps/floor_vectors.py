"""Real vectors to metric rows: how far held-out vectors are from training vectors."""

from pathlib import Path

import pandas as pd

from pairflow.artifacts import Metadata, Provenance, as_metrics, save_table
from pairflow.config import RealDraws
from pairflow.kinds.vectors.measure import RealVectors, measure_floor
from pairflow.steps.command import step
from pairflow.steps.options import evaluation, out, real_tokens


@step(RealDraws)
@real_tokens
@evaluation
@out("--out", help="Output file for the metric rows of the method 'data' (Parquet).")
def main(settings: RealDraws, tokens: Path, validation: Path, evaluation: str, out: Path):
    """Compute the floor: the same metrics as for samples, with draws of held-out vectors in their place."""
    provenance = Provenance()
    real = RealVectors.read(tokens, validation)
    rows = pd.DataFrame(measure_floor(real, settings.samples, settings.seed))
    shared = {"method": "data", "seed": settings.seed, "evaluation": evaluation}
    written = Metadata(
        kind="metrics",
        vocabulary=real.metadata.vocabulary,
        parameters=settings.model_dump(mode="json"),
        inputs=real.inputs,
    )
    save_table(out, as_metrics(rows, **shared), written, provenance)


if __name__ == "__main__":
    main()
